/* What each call returns in each state of a one-to-many socket, and what poll shows, as Linux does (net/sctp/socket.c and
   inet_shutdown of net/ipv4/af_inet.c) and RFC 6458, 3, describes. Such a socket is always writable, has no pending error, and is
   connected to none of its peers. */
#include "states.h"

static unsigned associations(int fd)
{
	unsigned count = 99;
	socklen_t length = sizeof count;

	CHECK(getsockopt(fd, SOL_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &length) == 0);
	return count;
}
static void await_associations(int fd, unsigned count)
{
	for (int i = 0; i < 20000 && associations(fd) != count; i++)
		usleep(1000);
	CHECK(associations(fd) == count);
}
static int sends(int fd, struct sockaddr_in to, int flags)
{
	return sctp_sendmsg(fd, "data", flags ? 0 : LENGTH, SA(to), sizeof to, 0, flags, 0, 0, 0);
}

/* Nothing of it delays the end of the program. */
static void aborts_when_closed(int fd)
{
	struct linger linger = { 1, 0 };

	CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
}

static void is_unbound(struct sockets *s)
{
	s->fd = make();
	s->address = loopback(9);
}
static void is_bound(struct sockets *s)
{
	s->fd = bound(&s->address);
	s->address = loopback(9);
}
static void listens(struct sockets *s)
{
	is_bound(s);
	aborts_when_closed(s->fd);
	CHECK(listen(s->fd, 1) == 0);
}
/* A socket that is bound to the same address as its peers: if it listens, it shares their UDP port. */
static int bound_to_any_port(void)
{
	struct sockaddr_in address;

	return bound(&address);
}
/* Its packets go to a UDP socket that nobody reads. */
static void is_connecting(struct sockets *s)
{
	struct sctp_udpencaps udp = { .sue_address.ss_family = AF_INET };
	struct sockaddr_in silent = loopback(0);
	socklen_t length = sizeof silent;

	s->fd = bound_to_any_port();
	aborts_when_closed(s->fd);
	s->address = loopback(9);
	s->other[0] = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(bind(s->other[0], SA(silent), sizeof silent) == 0);
	CHECK(getsockname(s->other[0], SA(silent), &length) == 0);
	udp.sue_port = silent.sin_port;
	CHECK(setsockopt(s->fd, SOL_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) == 0);
	FAILS(connect(s->fd, SA(s->address), sizeof s->address), EINPROGRESS);
}
static void is_connected(struct sockets *s)
{
	s->peer = bound(&s->address);
	CHECK(listen(s->peer, 1) == 0);
	s->fd = bound_to_any_port();
	CHECK(fcntl(s->fd, F_SETFL, 0) == 0 && connect(s->fd, SA(s->address), sizeof s->address) == 0);
	CHECK(fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0);
	await_associations(s->peer, 1);
}
/* The address of a socket's only association at its peer. */
static struct sockaddr_in own(int fd)
{
	struct sockaddr_in address;
	socklen_t length = sizeof address;

	CHECK(getsockname(fd, SA(address), &length) == 0);
	return loopback(ntohs(address.sin_port));
}
static void is_connected_by_its_peer(struct sockets *s)
{
	int fd;

	is_connected(s);
	s->address = own(s->fd);
	fd = s->fd;
	s->fd = s->peer;
	s->peer = fd;
}
static void is_refused(struct sockets *s)
{
	s->other[0] = bound(&s->address);
	/* The UDP port of the library stays open. */
	CHECK(listen(s->other[0], 1) == 0 && listen(s->other[0], 0) == 0);
	s->fd = bound_to_any_port();
	CHECK(connect(s->fd, SA(s->address), sizeof s->address) == -1 && errno == EINPROGRESS);
	await_associations(s->fd, 0);
}
static void has_data(struct sockets *s)
{
	is_connected(s);
	CHECK(sends(s->peer, own(s->fd), 0) == LENGTH);
	await(s->fd, POLLIN);
}
static void is_reset(struct sockets *s)
{
	is_connected(s);
	CHECK(sends(s->peer, own(s->fd), SCTP_ABORT) == 0);
	await_associations(s->fd, 0);
}
static void peer_has_shut(struct sockets *s)
{
	is_connected(s);
	CHECK(sends(s->peer, own(s->fd), SCTP_EOF) == 0);
	await_associations(s->fd, 0);
	await_associations(s->peer, 0);
}
static void peer_has_shut_after_data(struct sockets *s)
{
	has_data(s);
	CHECK(sends(s->peer, own(s->fd), SCTP_EOF) == 0);
	await_associations(s->fd, 0);
	await_associations(s->peer, 0);
}
static void has_shut(struct sockets *s)
{
	is_connected(s);
	CHECK(sends(s->fd, s->address, SCTP_EOF) == 0);
	await_associations(s->fd, 0);
	await_associations(s->peer, 0);
}

static const struct state states[] = {
	STATE(is_unbound), STATE(is_bound), STATE(listens), STATE(is_connecting), STATE(is_connected),
	STATE(is_connected_by_its_peer), STATE(is_refused), STATE(has_data), STATE(is_reset), STATE(peer_has_shut),
	STATE(peer_has_shut_after_data), STATE(has_shut),
};

static void by_sendto(struct sockets *s, char *text) { note(text, sends(s->fd, s->address, 0)); }
/* The end of the association, and how many there are then. */
static void by_ending(struct sockets *s, int how, char *text)
{
	note(text, sends(s->fd, s->address, how));
	for (int i = 0; i < 100 && associations(s->fd) > 0; i++)
		usleep(pause_us);
	note(text, associations(s->fd));
}
static void by_eof(struct sockets *s, char *text) { by_ending(s, SCTP_EOF, text); }
static void by_abort(struct sockets *s, char *text) { by_ending(s, SCTP_ABORT, text); }
static void by_listen_for_none(struct sockets *s, char *text) { note(text, listen(s->fd, 0)); }
static void by_listen_for_less(struct sockets *s, char *text) { note(text, listen(s->fd, -1)); }

static const struct call calls[] = {
	CALL(by_poll), CALL(by_recv), CALL(by_waiting_recv), CALL(by_peek), CALL(by_fionread), CALL(by_send), CALL(by_sendto), CALL(by_eof), CALL(by_abort),
	CALL(by_accept), CALL(by_connect), CALL(by_another_family), CALL(by_bind), CALL(by_listen), CALL(by_listen_for_none), CALL(by_listen_for_less),
	CALL(by_getsockname), CALL(by_getpeername), CALL(by_so_error), CALL(by_shut_reading), CALL(by_shut_writing), CALL(by_shut_both),
};

#define ALL                                                                                                   \
	"is_unbound is_bound listens is_connecting is_connected is_connected_by_its_peer is_refused has_data "  \
	"is_reset peer_has_shut peer_has_shut_after_data has_shut"

/* The first match counts, of one call. */
static const struct {
	const char *call, *states, *expected;
} expectations[] = {
	{ "by_poll", "has_data peer_has_shut_after_data", "IN OUT " },
	{ "by_poll", ALL, "OUT " },
	{ "by_recv", "has_data peer_has_shut_after_data", "4 EAGAIN EAGAIN " },
	{ "by_recv", ALL, "EAGAIN EAGAIN EAGAIN " },
	{ "by_waiting_recv", "has_data", "4 EAGAIN EAGAIN " },
	{ "by_waiting_recv", "peer_has_shut_after_data", "4 ENOTCONN ENOTCONN " },
	{ "by_waiting_recv", "listens is_connecting is_connected is_connected_by_its_peer", "EAGAIN EAGAIN EAGAIN " },
	{ "by_waiting_recv", ALL, "ENOTCONN ENOTCONN ENOTCONN " },
	{ "by_peek", "has_data peer_has_shut_after_data", "4 4 " },
	{ "by_peek", ALL, "EAGAIN EAGAIN " },
	{ "by_fionread", "has_data peer_has_shut_after_data", "4 " },
	{ "by_fionread", ALL, "0 " },
	/* Neither an address nor an association. */
	{ "by_send", ALL, "EPIPE " },
	/* Without an association, one is opened. */
	{ "by_sendto", ALL, "4 " },
	{ "by_eof by_abort", "is_connecting is_connected is_connected_by_its_peer has_data", "0 0 " },
	{ "by_eof by_abort", ALL, "EINVAL 0 " },
	{ "by_accept", ALL, "EOPNOTSUPP " },
	{ "by_connect", "is_connecting", "EALREADY " },
	{ "by_connect", "is_connected is_connected_by_its_peer has_data", "EISCONN " },
	{ "by_connect", ALL, "EINPROGRESS " },
	{ "by_another_family", ALL, "EINVAL " },
	{ "by_bind", "is_unbound", "0 " },
	{ "by_bind", ALL, "EINVAL " },
	{ "by_listen", ALL, "0 " },
	{ "by_listen_for_none", "listens is_connected_by_its_peer", "0 " },
	{ "by_listen_for_none by_listen_for_less", ALL, "EINVAL " },
	{ "by_getsockname", "is_unbound", "0 none " },
	{ "by_getsockname", ALL, "0 port " },
	{ "by_getpeername", ALL, "ENOTCONN " },
	{ "by_so_error", "has_data peer_has_shut_after_data", "0 0 IN OUT " },
	{ "by_so_error", ALL, "0 0 OUT " },
	/* The call fails, and wakes up threads that receive. Messages are still sent. */
	{ "by_shut_reading", "has_data peer_has_shut_after_data", "ENOTCONN IN OUT RDHUP 4 0 0 " },
	{ "by_shut_writing", "has_data peer_has_shut_after_data", "ENOTCONN IN OUT 4 EAGAIN EAGAIN " },
	{ "by_shut_both", "has_data peer_has_shut_after_data", "ENOTCONN IN OUT RDHUP HUP 4 0 0 " },
	{ "by_shut_writing", "listens is_connected_by_its_peer", "0 OUT EAGAIN EAGAIN EAGAIN " },
	{ "by_shut_reading by_shut_both", "listens is_connected_by_its_peer", "EOPNOTSUPP OUT EAGAIN EAGAIN EAGAIN " },
	{ "by_shut_reading", ALL, "ENOTCONN IN OUT RDHUP 0 0 0 " },
	{ "by_shut_writing", ALL, "ENOTCONN OUT EAGAIN EAGAIN EAGAIN " },
	{ "by_shut_both", ALL, "ENOTCONN IN OUT RDHUP HUP 0 0 0 " },
};

/* Whether a list has this name. */
static int has(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (; (list = strstr(list, name)); list += length)
		if (list[length] == 0 || list[length] == ' ')
			return 1;
	return 0;
}

static const char *expected(const struct state *state, const struct call *call)
{
	for (unsigned i = 0; i < sizeof expectations / sizeof *expectations; i++)
		if (has(expectations[i].call, call->name) && has(expectations[i].states, state->name))
			return expectations[i].expected;
	return "nothing: the table has no line for it";
}

static int check(const struct state *state, const struct call *call)
{
	const char *must = expected(state, call);
	char text[TEXT];

	/* Associations end in the background. A busy machine takes long for it. */
	for (pause_us = 1000; pause_us < 600000; pause_us *= 8) {
		struct sockets s = { -1, -1, { -1, -1, -1, -1 }, loopback(0) };

		*text = 0;
		state->make(&s);
		settled(s.fd);
		call->run(&s, text);
		close_all(&s);
		if (!strcmp(must, text))
			return 1;
	}
	fprintf(stderr, "%s, %s: %s; expected: %s\n", state->name, call->name, text, must);
	return 0;
}

int main(void)
{
	type = SOCK_SEQPACKET;
	signal(SIGPIPE, SIG_IGN);
	WALK(check);
	return 0;
}
