/* What the peer is asked to do. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define MAX_ADDRESSES 8
#define MAX_CHUNKS 16

/* How an association ends after what was to be sent has been sent. */
enum finish {
	FINISH_SHUTDOWN, /* gracefully, by us */
	FINISH_ABORT,    /* with an ABORT */
	FINISH_WAIT,     /* the other end ends it */
	FINISH_VANISH,   /* the process goes without a word */
};

struct options {
	bool server;
	bool echo;            /* send back what comes */
	bool unordered;
	bool check;           /* compare every byte that comes with what it should be */
	bool interleave;      /* I-DATA (RFC 8260) */
	bool reconfigure;     /* what the other end requests is performed (RFC 6525) */
	uint8_t authenticate[MAX_CHUNKS]; /* types of chunks that the other end has to authenticate (RFC 4895) */
	int authenticate_count;
	int auth_key;         /* identifier of the secret; less than 0: none */
	const char *auth_secret;
	unsigned resets;      /* times that all outgoing streams are reset and the bytes are sent again */
	uint16_t udp_port;    /* of our UDP socket */
	uint16_t remote_udp_port;
	uint16_t port;        /* of SCTP, here */
	uint16_t remote_port; /* of SCTP, there */
	int bind_count;
	struct sockaddr_storage bind[MAX_ADDRESSES];
	int connect_count;
	struct sockaddr_storage connect[MAX_ADDRESSES];
	int give_up_count;    /* addresses that it has no more once the peer has all that was to be sent */
	struct sockaddr_storage give_up[MAX_ADDRESSES];
	int gain_count;       /* addresses that it has then */
	struct sockaddr_storage gain[MAX_ADDRESSES];
	int primary_count;    /* the address that the other end is asked to send to then */
	struct sockaddr_storage primary[MAX_ADDRESSES];
	uint64_t bytes;       /* to be sent */
	double seconds;       /* to be sent for, if more than 0 */
	uint64_t expect;      /* bytes to be received before the end */
	uint32_t message;     /* bytes of a message */
	uint16_t streams;
	int receive_buffer;
	int send_buffer;
	double warmup;        /* what comes in this time after the first byte is not measured */
	enum finish finish;
	unsigned timeout;     /* the process gives up after so many seconds */
};

/* Ends the process with status 2 and a message if the words are wrong. Settings of the stack
 * (`--sysctl name=value`) are kept for apply_sysctls(). */
void parse_options(struct options *options, int argc, char **argv);

/* Remembers `name=value`; false if there is no such name. */
bool keep_sysctl(const char *assignment);
/* After usrsctp_init(), which sets them all to their defaults. */
void apply_sysctls(void);
/* The names, for an error message. */
const char *sysctl_names(void);

#endif
