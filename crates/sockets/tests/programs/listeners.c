/* Two listening sockets of one program, at one address, reach each other. */
#include "common.h"

/* Sends text from one socket to a peer, which receives it. Returns the address that it comes from. */
static struct sockaddr_in carries(int from, struct sockaddr_in to, int at)
{
	char text[10];
	struct sockaddr_in source;
	socklen_t length = sizeof source;
	int flags = 0;

	CHECK(sctp_sendmsg(from, "across", 6, SA(to), sizeof to, 0, 0, 0, 0, 0) == 6);
	await(at, POLLIN);
	CHECK(sctp_recvmsg(at, text, sizeof text, SA(source), &length, NULL, &flags) == 6);
	CHECK(memcmp(text, "across", 6) == 0 && flags == MSG_EOR);
	return source;
}

/* The first one opens an association to the second one by its message, or by connect. */
static void many_to_many(int by_connect)
{
	struct sockaddr_in addresses[2], seen;
	int fds[2] = { listener(SOCK_SEQPACKET, &addresses[0]), listener(SOCK_SEQPACKET, &addresses[1]) };

	for (int from = 0; from < 2; from++) {
		if (by_connect && from == 0)
			CHECK(connect(fds[0], SA(addresses[1]), sizeof addresses[1]) == 0);
		seen = carries(fds[from], addresses[!from], fds[!from]);
		CHECK(seen.sin_port == addresses[from].sin_port);
	}
	/* There is one association, and each knows the other as its peer. */
	FAILS(connect(fds[0], SA(addresses[1]), sizeof addresses[1]), EISCONN);
	FAILS(connect(fds[1], SA(addresses[0]), sizeof addresses[0]), EISCONN);
	CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
}

/* Sockets that connect, one to each of two that listen. */
static void one_to_one(void)
{
	struct sockaddr_in addresses[2];
	int fds[2] = { listener(SOCK_STREAM, &addresses[0]), listener(SOCK_STREAM, &addresses[1]) };

	for (int to = 0; to < 2; to++) {
		int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), far;

		CHECK(connect(near, SA(addresses[to]), sizeof addresses[to]) == 0);
		far = accept(fds[to], NULL, NULL);
		CHECK(far >= 0);
		carries(near, addresses[to], far);
		CHECK(close(near) == 0 && close(far) == 0);
	}
	/* A socket that listens does not connect. */
	FAILS(connect(fds[0], SA(addresses[1]), sizeof addresses[1]), EISCONN);
	CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
}

/* A one-to-many socket reaches a one-to-one socket, and no port on which nothing listens. */
static void many_to_one(void)
{
	struct sockaddr_in addresses[2], nobody = loopback(9);
	int many = listener(SOCK_SEQPACKET, &addresses[0]), one = listener(SOCK_STREAM, &addresses[1]), far;

	CHECK(connect(many, SA(addresses[1]), sizeof addresses[1]) == 0);
	far = accept(one, NULL, NULL);
	CHECK(far >= 0);
	carries(many, addresses[1], far);
	carries(far, addresses[0], many);
	FAILS(connect(many, SA(nobody), sizeof nobody), ECONNREFUSED);
	CHECK(close(far) == 0 && close(one) == 0 && close(many) == 0);
}

static void stops_waiting(int fd)
{
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
}

/* The kernel completes a handshake with a socket of the same machine before connect returns, even on a socket that does not wait. */
static void connect_is_done(void)
{
	struct sockaddr_in address;
	int one = listener(SOCK_STREAM, &address), near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), far;

	stops_waiting(one);
	stops_waiting(near);
	FAILS(accept(one, NULL, NULL), EAGAIN);
	FAILS(connect(near, SA(address), sizeof address), EINPROGRESS);
	far = accept(one, NULL, NULL);
	CHECK(far >= 0);
	CHECK(close(near) == 0 && close(far) == 0 && close(one) == 0);

	one = listener(SOCK_SEQPACKET, &address);
	near = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	stops_waiting(near);
	FAILS(connect(near, SA(address), sizeof address), EINPROGRESS);
	FAILS(connect(near, SA(address), sizeof address), EISCONN);
	CHECK(close(near) == 0 && close(one) == 0);
}

/* So it does with a shutdown: the port is free again, and the peer sends no more. */
static void close_is_done(int type)
{
	struct sockaddr_in addresses[2] = { loopback(0) };
	socklen_t length = sizeof *addresses;
	int near = socket(AF_INET, type, IPPROTO_SCTP), one, far;

	CHECK(bind(near, SA(addresses[0]), length) == 0 && getsockname(near, SA(addresses[0]), &length) == 0);
	one = far = listener(type, &addresses[1]);
	CHECK(connect(near, SA(addresses[1]), length) == 0);
	if (type == SOCK_STREAM)
		CHECK((far = accept(one, NULL, NULL)) >= 0);
	carries(near, addresses[1], far);
	CHECK(sctp_sendmsg(near, "unread", 6, SA(addresses[1]), length, 0, 0, 0, 0, 0) == 6);
	CHECK(close(near) == 0);
	if (type == SOCK_STREAM)
		FAILS(send(far, "more", 4, MSG_NOSIGNAL), EPIPE);
	near = socket(AF_INET, type, IPPROTO_SCTP);
	CHECK(bind(near, SA(addresses[0]), length) == 0);
	CHECK(close(near) == 0 && close(one) == 0);
	if (type == SOCK_STREAM)
		CHECK(close(far) == 0);
	one = socket(AF_INET, type, IPPROTO_SCTP);
	CHECK(bind(one, SA(addresses[1]), length) == 0 && close(one) == 0);
}

/* A message that opens an association follows the notification of it, before those of later associations. */
static void first_messages_are_in_order(void)
{
	struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = SCTP_ASSOC_CHANGE, .se_on = 1 };
	struct sockaddr_in address;
	int many = listener(SOCK_SEQPACKET, &address), clients[10], flags;
	union sctp_notification told;

	CHECK(setsockopt(many, SOL_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
	for (int i = 0; i < 10; i++) {
		clients[i] = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
		CHECK(sctp_sendmsg(clients[i], "first", 5, SA(address), sizeof address, 0, 0, 0, 0, 0) == 5);
	}
	for (int i = 0; i < 20; i++) {
		await(many, POLLIN);
		flags = 0;
		CHECK(sctp_recvmsg(many, &told, sizeof told, NULL, NULL, NULL, &flags) > 0);
		CHECK(!!(flags & MSG_NOTIFICATION) == (i % 2 == 0));
	}
	for (int i = 0; i < 10; i++)
		CHECK(close(clients[i]) == 0);
	CHECK(close(many) == 0);
}

int main(void)
{
	connect_is_done();
	close_is_done(SOCK_STREAM);
	close_is_done(SOCK_SEQPACKET);
	first_messages_are_in_order();
	many_to_many(0);
	many_to_many(1);
	one_to_one();
	many_to_one();
	puts("done");
	return 0;
}
