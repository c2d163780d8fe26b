/*
 * The sockets API of SCTP (RFC 6458) as libropewalk.so provides it. Structures and numbers are those of the kernel's
 * <linux/sctp.h>; the functions are those that Linux's programs know from lksctp-tools. Link with -lropewalk before the
 * C library, or preload the library: `ropewalk preload -- PROGRAM`.
 */
#ifndef ROPEWALK_NETINET_SCTP_H
#define ROPEWALK_NETINET_SCTP_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <linux/sctp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Level of the options and of the control messages. */
#ifndef SOL_SCTP
#define SOL_SCTP 132
#endif
#ifndef IPPROTO_SCTP
#define IPPROTO_SCTP 132
#endif

/* NR-SACK, a `struct sctp_assoc_value`. The number is that of FreeBSD and usrsctp; <linux/sctp.h> has none. */
#ifndef SCTP_NRSACK_SUPPORTED
#define SCTP_NRSACK_SUPPORTED 0x30
#endif

/* RFC 6458, 9.1 and 9.9: several addresses. They follow each other without gaps. */
int sctp_bindx(int sd, struct sockaddr *addrs, int addrcnt, int flags);
int sctp_connectx(int sd, struct sockaddr *addrs, int addrcnt, sctp_assoc_t *id);

/* RFC 6458, 9.2: an association of a one-to-many socket becomes a socket of its own. */
int sctp_peeloff(int sd, sctp_assoc_t assoc_id);
int sctp_peeloff_flags(int sd, sctp_assoc_t assoc_id, unsigned flags);

/* RFC 6458, 9.3 to 9.6: the addresses of both ends. Each list is freed by the function beside it. */
int sctp_getpaddrs(int sd, sctp_assoc_t id, struct sockaddr **addrs);
int sctp_freepaddrs(struct sockaddr *addrs);
int sctp_getladdrs(int sd, sctp_assoc_t id, struct sockaddr **addrs);
int sctp_freeladdrs(struct sockaddr *addrs);
int sctp_getaddrlen(sa_family_t family);

/* RFC 6458, 8.1: an option of one association. */
int sctp_opt_info(int sd, sctp_assoc_t id, int opt, void *arg, socklen_t *size);

/* RFC 6458, 9.7, 9.8 and 9.10. */
int sctp_sendmsg(int s, const void *msg, size_t len, struct sockaddr *to, socklen_t tolen, uint32_t ppid,
		 uint32_t flags, uint16_t stream_no, uint32_t timetolive, uint32_t context);
int sctp_send(int s, const void *msg, size_t len, const struct sctp_sndrcvinfo *sinfo, int flags);
int sctp_recvmsg(int s, void *msg, size_t len, struct sockaddr *from, socklen_t *fromlen,
		 struct sctp_sndrcvinfo *sinfo, int *msg_flags);

/* RFC 6458, 9.12: types of `info`. */
enum {
	SCTP_SENDV_NOINFO,
	SCTP_SENDV_SNDINFO,
	SCTP_SENDV_PRINFO,
	SCTP_SENDV_AUTHINFO,
	SCTP_SENDV_SPA
};

#define SCTP_SEND_SNDINFO_VALID 0x1
#define SCTP_SEND_PRINFO_VALID 0x2
#define SCTP_SEND_AUTHINFO_VALID 0x4

struct sctp_sendv_spa {
	uint32_t sendv_flags;
	struct sctp_sndinfo sendv_sndinfo;
	struct sctp_prinfo sendv_prinfo;
	struct sctp_authinfo sendv_authinfo;
};

int sctp_sendv(int s, const struct iovec *iov, int iovcnt, struct sockaddr *addrs, int addrcnt, void *info,
	       socklen_t infolen, unsigned int infotype, int flags);

/* RFC 6458, 9.13: types of `info`. */
enum {
	SCTP_RECVV_NOINFO,
	SCTP_RECVV_RCVINFO,
	SCTP_RECVV_NXTINFO,
	SCTP_RECVV_RN
};

struct sctp_recvv_rn {
	struct sctp_rcvinfo recvv_rcvinfo;
	struct sctp_nxtinfo recvv_nxtinfo;
};

int sctp_recvv(int s, const struct iovec *iov, int iovlen, struct sockaddr *from, socklen_t *fromlen, void *info,
	       socklen_t *infolen, unsigned int *infotype, int *flags);

#ifdef __cplusplus
}
#endif

#endif
