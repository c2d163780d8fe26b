/* usrsctp behind a command line: a peer for tests of interoperation.
 *
 * One association over UDP (RFC 6951), opened or accepted; it sends messages that the other end can check,
 * checks what comes, ends in the way that was asked for, and prints what happened as JSON. */
#include "options.h"
#include "pattern.h"
#include "report.h"
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SCTP_INTERLEAVING_SUPPORTED
/* The library has it, its public header does not. */
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif

static void fail(const char *what)
{
	fprintf(stderr, "usrsctp-peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void set(struct socket *socket, int level, int name, const void *value, socklen_t length, const char *what)
{
	if (usrsctp_setsockopt(socket, level, name, value, length) < 0)
		fail(what);
}

static void subscribe(struct socket *socket)
{
	static const uint16_t types[] = { SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_REMOTE_ERROR, SCTP_SHUTDOWN_EVENT,
	                                  SCTP_STREAM_RESET_EVENT, SCTP_ASSOC_RESET_EVENT };
	struct sctp_event subscription = { 0 };

	subscription.se_assoc_id = SCTP_FUTURE_ASSOC;
	subscription.se_on = 1;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		subscription.se_type = types[i];
		set(socket, IPPROTO_SCTP, SCTP_EVENT, &subscription, sizeof(subscription), "SCTP_EVENT");
	}
}

/* Which chunks the other end has to authenticate, and with which secret this end does so. */
static void authenticate(struct socket *socket, const struct options *o)
{
	struct sctp_authkeyid active = { 0 };
	size_t length = o->auth_key < 0 ? 0 : strlen(o->auth_secret);
	struct sctp_authkey *key = calloc(1, sizeof(*key) + length);

	for (int i = 0; i < o->authenticate_count; i++) {
		struct sctp_authchunk chunk = { .sauth_chunk = o->authenticate[i] };

		set(socket, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &chunk, sizeof(chunk), "SCTP_AUTH_CHUNK");
	}
	if (o->auth_key >= 0) {
		key->sca_assoc_id = active.scact_assoc_id = SCTP_FUTURE_ASSOC;
		key->sca_keynumber = active.scact_keynumber = (uint16_t)o->auth_key;
		key->sca_keylength = (uint16_t)length;
		memcpy(key->sca_key, o->auth_secret, length);
		set(socket, IPPROTO_SCTP, SCTP_AUTH_KEY, key, (socklen_t)(sizeof(*key) + length), "SCTP_AUTH_KEY");
		set(socket, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &active, sizeof(active), "SCTP_AUTH_ACTIVE_KEY");
	}
	free(key);
}

static void configure(struct socket *socket, const struct options *o)
{
	struct sctp_initmsg streams = { 0 };
	struct sctp_udpencaps encapsulation = { 0 };
	struct sctp_assoc_value interleave = { 0 };
	int on = 1, interleave_level = 2;

	set(socket, SOL_SOCKET, SO_RCVBUF, &o->receive_buffer, sizeof(int), "SO_RCVBUF");
	set(socket, SOL_SOCKET, SO_SNDBUF, &o->send_buffer, sizeof(int), "SO_SNDBUF");
	set(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof(on), "SCTP_NODELAY");
	set(socket, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof(on), "SCTP_RECVRCVINFO");
	streams.sinit_num_ostreams = o->streams;
	streams.sinit_max_instreams = 65535;
	set(socket, IPPROTO_SCTP, SCTP_INITMSG, &streams, sizeof(streams), "SCTP_INITMSG");
	encapsulation.sue_address.ss_family = AF_INET;
	encapsulation.sue_port = htons(o->remote_udp_port);
	set(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof(encapsulation),
	    "SCTP_REMOTE_UDP_ENCAPS_PORT");
	if (o->interleave) {
		set(socket, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &interleave_level, sizeof(int), "SCTP_FRAGMENT_INTERLEAVE");
		interleave.assoc_value = 1;
		set(socket, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &interleave, sizeof(interleave), "SCTP_INTERLEAVING_SUPPORTED");
	}
	if (o->reconfigure) {
		struct sctp_assoc_value all = { 0 };

		all.assoc_id = SCTP_FUTURE_ASSOC;
		all.assoc_value = SCTP_ENABLE_RESET_STREAM_REQ | SCTP_ENABLE_RESET_ASSOC_REQ | SCTP_ENABLE_CHANGE_ASSOC_REQ;
		set(socket, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &all, sizeof(all), "SCTP_ENABLE_STREAM_RESET");
	}
	authenticate(socket, o);
	subscribe(socket);
}

static socklen_t length_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void bind_all(struct socket *socket, const struct options *o)
{
	for (int i = 0; i < o->bind_count; i++) {
		struct sockaddr_storage address = o->bind[i];

		/* The stack takes one address a call. */
		if (usrsctp_bindx(socket, (struct sockaddr *)&address, 1, SCTP_BINDX_ADD_ADDR) < 0)
			fail("bind");
	}
}

static void connect_all(struct socket *socket, const struct options *o)
{
	uint8_t packed[MAX_ADDRESSES * sizeof(struct sockaddr_storage)];
	size_t length = 0;

	for (int i = 0; i < o->connect_count; i++) {
		memcpy(packed + length, &o->connect[i], length_of(&o->connect[i]));
		length += length_of(&o->connect[i]);
	}
	if (usrsctp_connectx(socket, (struct sockaddr *)packed, o->connect_count, NULL) < 0)
		fail("connect");
}

static bool any_ipv6(const struct sockaddr_storage *list, int count)
{
	for (int i = 0; i < count; i++)
		if (list[i].ss_family == AF_INET6)
			return true;
	return false;
}

static struct socket *open_association(const struct options *o)
{
	/* A socket of IPv6 has addresses of both families. */
	bool ipv6 = any_ipv6(o->bind, o->bind_count) || any_ipv6(o->connect, o->connect_count);
	int family = ipv6 ? AF_INET6 : AF_INET;
	struct socket *socket = usrsctp_socket(family, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	struct socket *accepted;

	if (socket == NULL)
		fail("socket");
	configure(socket, o);
	bind_all(socket, o);
	if (!o->server) {
		puts("connecting");
		fflush(stdout);
		connect_all(socket, o);
		return socket;
	}
	if (usrsctp_listen(socket, 1) < 0)
		fail("listen");
	puts("listening");
	fflush(stdout);
	accepted = usrsctp_accept(socket, NULL, NULL);
	if (accepted == NULL)
		fail("accept");
	return accepted;
}

static void give_up(int signal)
{
	static const char message[] = "usrsctp-peer: not finished in time\n";
	ssize_t ignored = write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)signal;
	(void)ignored;
	_exit(124);
}

int main(int argc, char **argv)
{
	struct options options;
	struct session session;
	pthread_t reader;

	parse_options(&options, argc, argv);
	now_s();
	signal(SIGALRM, give_up);
	alarm(options.timeout);
	pattern_prepare();
	usrsctp_init(options.udp_port, NULL, NULL);
	usrsctp_sysctl_set_sctp_blackhole(0);
	apply_sysctls();
	session_prepare(&session, &options);
	session.socket = open_association(&options);
	if (pthread_create(&reader, NULL, session_read, &session) != 0)
		fail("thread");
	session_write(&session);
	session_finish(&session);
	print_report(&session.report);
	/* No goodbye: what has to be said was said above. */
	_exit(session.report.wrong == 0 ? 0 : 1);
}
