/* What each call returns in each state of a one-to-one socket, and what poll shows. The kernel's TCP is the judge: the same
   walk uses its sockets. Where SCTP differs, the table says what Linux does, and why. */
#include "states.h"

static void is_unbound(struct sockets *s)
{
	s->fd = make();
	s->address = loopback(9);
}
static void is_bound(struct sockets *s) { s->fd = bound(&s->address); }
static void listens(struct sockets *s)
{
	is_bound(s);
	CHECK(listen(s->fd, 2) == 0);
}
static void is_connected(struct sockets *s)
{
	listens(s);
	s->other[0] = s->fd;
	s->fd = make();
	CHECK(connect(s->fd, SA(s->address), sizeof s->address) == 0 || errno == EINPROGRESS);
	await(s->fd, POLLOUT);
	await(s->other[0], POLLIN);
	s->peer = accept(s->other[0], NULL, NULL);
	CHECK(s->peer >= 0);
}
/* TCP drops a SYN if the accept queue is full; the packets of SCTP go to a UDP socket that nobody reads. */
static void is_connecting(struct sockets *s)
{
	struct sctp_udpencaps udp = { .sue_address.ss_family = AF_INET };
	struct sockaddr_in silent = loopback(0);
	socklen_t length = sizeof silent;

	is_bound(s);
	CHECK(listen(s->fd, 0) == 0);
	s->peer = s->fd;
	s->other[3] = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(bind(s->other[3], SA(silent), sizeof silent) == 0);
	CHECK(getsockname(s->other[3], SA(silent), &length) == 0);
	udp.sue_port = silent.sin_port;
	for (int i = 0; i < 3; i++) {
		s->fd = make();
		CHECK(protocol == IPPROTO_TCP || setsockopt(s->fd, SOL_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) == 0);
		CHECK(connect(s->fd, SA(s->address), sizeof s->address) == -1 && errno == EINPROGRESS);
		if (!(settled(s->fd) & POLLOUT))
			return;
		s->other[i] = s->fd;
	}
	CHECK(!"a connection that is not established");
}
static void has_a_connection_waiting(struct sockets *s)
{
	listens(s);
	s->other[0] = make();
	CHECK(connect(s->other[0], SA(s->address), sizeof s->address) == 0 || errno == EINPROGRESS);
	await(s->fd, POLLIN);
}
static void was_accepted(struct sockets *s)
{
	int fd;

	is_connected(s);
	fd = s->fd;
	s->fd = s->peer;
	s->peer = fd;
	CHECK(fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0);
}
static void is_refused(struct sockets *s)
{
	s->other[0] = bound(&s->address);
	/* The UDP port of the library stays open. */
	CHECK(listen(s->other[0], 1) == 0 && close(s->other[0]) == 0);
	s->other[0] = -1;
	s->fd = make();
	CHECK(connect(s->fd, SA(s->address), sizeof s->address) == -1);
	CHECK(errno == EINPROGRESS || errno == ECONNREFUSED);
	await(s->fd, POLLIN);
}
static void knows_of_the_refusal(struct sockets *s)
{
	int error = 0;
	socklen_t length = sizeof error;

	is_refused(s);
	CHECK(getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNREFUSED);
}
static void has_data(struct sockets *s)
{
	is_connected(s);
	CHECK(write(s->peer, "data", LENGTH) == LENGTH);
	await(s->fd, POLLIN);
}
static void resets(struct sockets *s)
{
	struct linger linger = { 1, 0 };

	CHECK(setsockopt(s->peer, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0 && close(s->peer) == 0);
	s->peer = -1;
}
static void is_reset(struct sockets *s)
{
	is_connected(s);
	resets(s);
	await(s->fd, POLLIN);
}
static void knows_of_the_reset(struct sockets *s)
{
	int error = 0;
	socklen_t length = sizeof error;

	is_reset(s);
	CHECK(getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNRESET);
}
static void peer_has_shut(struct sockets *s)
{
	is_connected(s);
	CHECK(shutdown(s->peer, SHUT_WR) == 0);
	await(s->fd, POLLIN);
}
static void peer_has_shut_after_data(struct sockets *s)
{
	has_data(s);
	CHECK(shutdown(s->peer, SHUT_WR) == 0);
	await(s->fd, POLLRDHUP);
}
static void peer_has_closed(struct sockets *s)
{
	is_connected(s);
	CHECK(close(s->peer) == 0);
	s->peer = -1;
	await(s->fd, POLLIN);
}
static void peer_has_closed_after_data(struct sockets *s)
{
	has_data(s);
	CHECK(close(s->peer) == 0);
	s->peer = -1;
	await(s->fd, POLLRDHUP);
}
static void has_shut_reading(struct sockets *s)
{
	is_connected(s);
	CHECK(shutdown(s->fd, SHUT_RD) == 0);
}
static void has_shut_writing(struct sockets *s)
{
	is_connected(s);
	CHECK(shutdown(s->fd, SHUT_WR) == 0);
	await(s->peer, POLLIN);
}
static void both_have_shut(struct sockets *s)
{
	has_shut_writing(s);
	/* With SCTP, the association has ended already. */
	CHECK(shutdown(s->peer, SHUT_WR) == 0 || errno == ENOTCONN || protocol == IPPROTO_SCTP);
	await(s->fd, POLLRDHUP);
}

/* Messages that end the association. */
static void by_ending_message(struct sockets *s, char *text)
{
	struct sctp_sndrcvinfo eof = { .sinfo_flags = SCTP_EOF }, abort = { .sinfo_flags = SCTP_ABORT };

	note(text, sctp_send(s->fd, NULL, 0, &eof, MSG_NOSIGNAL));
	note(text, sctp_send(s->fd, NULL, 0, &abort, MSG_NOSIGNAL));
}

static const struct state states[] = {
	STATE(is_unbound), STATE(is_bound), STATE(listens), STATE(has_a_connection_waiting),
	STATE(is_connecting), STATE(is_connected),
	STATE(was_accepted), STATE(is_refused), STATE(knows_of_the_refusal), STATE(has_data), STATE(is_reset),
	STATE(knows_of_the_reset), STATE(peer_has_shut), STATE(peer_has_shut_after_data), STATE(peer_has_closed),
	STATE(peer_has_closed_after_data), STATE(has_shut_reading), STATE(has_shut_writing), STATE(both_have_shut),
};

static const struct call calls[] = {
	CALL(by_poll), CALL(by_recv), CALL(by_waiting_recv), CALL(by_peek), CALL(by_fionread), CALL(by_send), CALL(by_ending_message), CALL(by_accept), CALL(by_connect),
	CALL(by_another_family),
	CALL(by_bind), CALL(by_listen), CALL(by_getsockname), CALL(by_getpeername), CALL(by_so_error), CALL(by_shut_reading),
	CALL(by_shut_writing), CALL(by_shut_both),
};

#define NOT_LISTENING                                                                                           \
	"is_unbound is_bound is_connecting is_connected was_accepted is_refused knows_of_the_refusal has_data "   \
	"is_reset knows_of_the_reset peer_has_shut peer_has_shut_after_data peer_has_closed "                     \
	"peer_has_closed_after_data has_shut_reading has_shut_writing both_have_shut"
#define ALL NOT_LISTENING " listens has_a_connection_waiting"

/* Where SCTP differs from TCP, in several states. The first match counts. */
static const struct difference {
	const char *states, *calls, *expected;
} differences[] = {
	/* Before anything else, the kernel looks at the family (sctp_connect). */
	{ ALL, "by_another_family", "EINVAL " },
	/* One-to-one sockets end associations by shutdown and SO_LINGER (sctp_sendmsg_parse). */
	{ NOT_LISTENING, "by_ending_message", "EINVAL EINVAL " },
	/* Without an association, Linux shows neither OUT nor HUP (sctp_poll). */
	{ "is_unbound is_bound", "by_poll", "" },
	{ "is_unbound is_bound", "by_so_error", "0 0 " },
	{ "is_unbound is_bound", "by_shut_reading", "ENOTCONN IN RDHUP 0 0 0 " },
	{ "is_unbound is_bound", "by_shut_writing", "ENOTCONN ENOTCONN ENOTCONN ENOTCONN " },
	/* As in Linux, the call succeeds and threads in accept wake up (sctp_disconnect). To wake those in poll, IN is shown. */
	{ "listens has_a_connection_waiting", "by_shut_reading by_shut_both", "0 IN RDHUP 0 0 0 " },
	/* Linux does not know a socket that connects as connected, and does not give the attempt up (inet_shutdown). */
	{ "is_connecting", "by_shut_reading by_shut_both", "ENOTCONN IN RDHUP 0 0 0 " },
	{ "is_connecting", "by_shut_writing", "ENOTCONN EAGAIN EAGAIN EAGAIN " },
	/* After a refusal, it is not connected, and bound. */
	{ "is_refused", "by_recv by_waiting_recv", "ECONNREFUSED ENOTCONN ENOTCONN " },
	{ "is_refused", "by_peek", "ECONNREFUSED ENOTCONN " },
	{ "is_refused", "by_shut_writing", "ENOTCONN IN OUT RDHUP HUP ERR ECONNREFUSED ENOTCONN ENOTCONN " },
	{ "knows_of_the_refusal", "by_recv by_waiting_recv", "ENOTCONN ENOTCONN ENOTCONN " },
	{ "knows_of_the_refusal", "by_shut_writing", "ENOTCONN IN OUT RDHUP HUP ENOTCONN ENOTCONN ENOTCONN " },
	{ "knows_of_the_refusal", "by_peek", "ENOTCONN ENOTCONN " },
	{ "is_refused knows_of_the_refusal", "by_connect", "EINPROGRESS " },
	{ "is_refused knows_of_the_refusal", "by_bind", "EINVAL " },
	{ "is_refused knows_of_the_refusal", "by_listen", "0 " },
	/* RFC 6458, 4.1.5: data is queued while the association is being opened. */
	{ "is_connecting", "by_send", "4 " },
	/* A socket that has had an association is not connected or bound again (__sctp_connect, sctp_bind), and knows its peer. */
	{ "is_connected has_data peer_has_shut_after_data peer_has_closed_after_data is_reset knows_of_the_reset", "by_connect", "EISCONN " },
	{ "is_reset knows_of_the_reset both_have_shut", "by_bind", "EINVAL " },
	{ "is_reset knows_of_the_reset both_have_shut", "by_getpeername", "0 " },
	{ "is_reset", "by_shut", "0 IN OUT RDHUP HUP ERR ECONNRESET 0 0 " },
	{ "knows_of_the_reset both_have_shut", "by_shut", "0 IN OUT RDHUP HUP 0 0 0 " },
	/* RFC 6458, 4.1.7: SCTP has no half-closed state. The end of one direction ends the association. */
	{ "peer_has_shut_after_data peer_has_closed_after_data", "by_send", "EPIPE " },
	{ "is_connected was_accepted has_shut_writing", "by_shut_writing", "0 IN OUT RDHUP HUP 0 0 0 " },
	{ "has_data", "by_shut_writing", "0 IN OUT RDHUP HUP 4 0 0 " },
	{ "has_shut_writing", "by_poll", "IN OUT RDHUP HUP " },
	{ "has_shut_writing", "by_so_error", "0 0 IN OUT RDHUP HUP " },
	{ "has_shut_writing", "by_recv", "0 0 0 " },
	/* The end of stream is the peer's SHUTDOWN (sctp_wait_for_packet). A call that does not wait fails in Linux, too. */
	{ "has_shut_writing both_have_shut", "by_waiting_recv", "ENOTCONN ENOTCONN ENOTCONN " },
	{ "has_shut_writing", "by_peek", "0 0 " },
};

/* What a call must return. TCP has returned `tcp`. */
static const char *expected(const struct state *state, const struct call *call, const char *tcp)
{
	const struct difference *one = differences;

	for (; one < differences + sizeof differences / sizeof *differences; one++)
		if (strstr(one->states, state->name) && (strstr(call->name, one->calls) || strstr(one->calls, call->name)))
			return one->expected;
	return tcp;
}

static void walk(const struct state *state, const struct call *call, char *text)
{
	struct sockets s = { -1, -1, { -1, -1, -1, -1 }, loopback(0) };

	*text = 0;
	state->make(&s);
	settled(s.fd);
	call->run(&s, text);
	close_all(&s);
}

static int check(const struct state *state, const struct call *call)
{
	char tcp[TEXT], sctp[TEXT];
	const char *must;

	/* Associations end in the background. A busy machine takes long for it. */
	for (pause_us = 1000; pause_us < 600000; pause_us *= 8) {
		protocol = IPPROTO_TCP;
		walk(state, call, tcp);
		protocol = IPPROTO_SCTP;
		walk(state, call, sctp);
		must = expected(state, call, tcp);
		if (!strcmp(must, sctp))
			break;
	}
	if (strcmp(must, sctp))
		fprintf(stderr, "%s, %s: %s; expected: %s; TCP: %s\n", state->name, call->name, sctp, must, tcp);
	else if (must != tcp && !strcmp(must, tcp))
		fprintf(stderr, "%s, %s: no difference from TCP: %s\n", state->name, call->name, tcp);
	else
		return 1;
	return 0;
}

int main(void)
{
	WALK(check);
	return 0;
}
