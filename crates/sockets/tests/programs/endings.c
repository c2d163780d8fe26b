/* What a program is told of messages and associations that end early (RFC 6458, 6.1.1, 6.1.5, 6.1.7 and 6.1.11). */
#include "relay.h"

enum { LONG = 4 << 20, ROOM = 1 << 16, STREAM = 1 };

static char words[LONG];
static _Alignas(8) char buffer[ROOM];

static void subscribe(int fd, int type)
{
	struct sctp_event event = { .se_type = type, .se_on = 1 };

	CHECK(setsockopt(fd, SOL_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
}

/* Receives once into the buffer. Returns the length, or -1 if nothing arrives within the time. */
static ssize_t receive(int fd, size_t room, int *flags, int wait_ms)
{
	struct iovec vector = { buffer, room };
	struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	ssize_t got = -1;

	/* The end of a message that was given up makes the socket readable although nothing can be read. */
	while (got < 0 && poll(&polled, 1, wait_ms) == 1) {
		got = recvmsg(fd, &header, MSG_DONTWAIT);
		if (got < 0 && errno != EAGAIN)
			break;
	}
	*flags = got > 0 ? header.msg_flags : 0;
	return got;
}

/* The next notification, of this type. */
static union sctp_notification *next(int fd, int type)
{
	int flags;

	CHECK(receive(fd, sizeof buffer, &flags, 20000) > 0);
	CHECK(flags & MSG_NOTIFICATION);
	CHECK(((union sctp_notification *)buffer)->sn_header.sn_type == type);
	return (union sctp_notification *)buffer;
}

/* A client through the relay, and the socket that serves it, with the least receive buffers. */
static void pair(int ends[2], const int *kinds, int interleaved)
{
	struct sockaddr_in address;
	struct sctp_assoc_value on = { 0, 1 };
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), bytes = 8000, level = 2;
	socklen_t length = sizeof address;

	ends[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(fd >= 0 && ends[0] >= 0);
	for (int i = 0; i < 2; i++) {
		int one = i ? fd : ends[0];

		CHECK(setsockopt(one, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
		if (interleaved) {
			CHECK(setsockopt(one, SOL_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level) == 0);
			CHECK(setsockopt(one, SOL_SCTP, SCTP_INTERLEAVING_SUPPORTED, &on, sizeof on) == 0);
		}
	}
	for (; kinds && *kinds; kinds++)
		subscribe(fd, *kinds);
	address = loopback(0);
	CHECK(bind(fd, SA(address), sizeof address) == 0 && listen(fd, 8) == 0);
	CHECK(getsockname(fd, SA(address), &length) == 0);
	through_relay(ends[0]);
	CHECK(connect(ends[0], SA(address), sizeof address) == 0);
	ends[1] = accept(fd, NULL, NULL);
	CHECK(ends[1] >= 0);
	CHECK(close(fd) == 0);
}

static void finish(int ends[2])
{
	stopped = 0;
	close(ends[0]);
	close(ends[1]);
}

static void aborts(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
	CHECK(close(fd) == 0);
}

/* Reads parts of the long message until something else is read, or nothing. Returns what the call returned. */
static ssize_t read_parts(int fd, int wait_ms, size_t most, int *flags)
{
	size_t total = 0;

	for (;;) {
		ssize_t got = receive(fd, 5000, flags, wait_ms);

		if (got <= 0 || (*flags & MSG_NOTIFICATION) || *buffer != 'B')
			return got;
		/* A message that looks complete is complete. */
		CHECK(!(*flags & MSG_EOR));
		total += got;
		CHECK(total < LONG);
		if (total >= most)
			return got;
	}
}

static void check_aborted(void)
{
	struct sctp_pdapi_event *event = (void *)buffer;

	CHECK(event->pdapi_type == SCTP_PARTIAL_DELIVERY_EVENT && event->pdapi_length == sizeof *event);
	CHECK(event->pdapi_flags == 0 && event->pdapi_indication == SCTP_PARTIAL_DELIVERY_ABORTED);
	CHECK(event->pdapi_stream == STREAM && event->pdapi_seq == 1 && event->pdapi_assoc_id > 2);
}

/* The sender gives a message up of which parts were delivered. `drained`: the program has read all of them before. */
static void abandoned(int told, int drained, int interleaved)
{
	const int kinds[] = { SCTP_PARTIAL_DELIVERY_EVENT, 0 };
	ssize_t got;
	int ends[2], flags;

	pair(ends, told ? kinds : NULL, interleaved);
	subscribe(ends[0], SCTP_SEND_FAILED_EVENT);
	CHECK(sctp_sendmsg(ends[0], "first", 5, NULL, 0, 0, 0, STREAM, 0, 0) == 5);
	CHECK(receive(ends[1], sizeof buffer, &flags, 20000) == 5 && (flags & MSG_EOR));
	CHECK(sctp_sendmsg(ends[0], words, LONG, NULL, 0, 0, SCTP_PR_SCTP_TTL, STREAM, 700, 0) == LONG);
	CHECK(read_parts(ends[1], 20000, 20000, &flags) > 0);
	if (drained) {
		stopped = 1;
		CHECK(read_parts(ends[1], 200, LONG, &flags) == -1);
	}
	await(ends[0], POLLIN);
	stopped = 0;
	CHECK(sctp_sendmsg(ends[0], "small", 5, NULL, 0, 0, 0, STREAM, 0, 0) == 5);
	got = read_parts(ends[1], 20000, LONG, &flags);
	if (told) {
		CHECK(got == sizeof(struct sctp_pdapi_event) && flags == (MSG_EOR | MSG_NOTIFICATION));
		check_aborted();
		got = receive(ends[1], sizeof buffer, &flags, 20000);
	}
	CHECK(got == 5 && flags == MSG_EOR && memcmp(buffer, "small", 5) == 0);
	finish(ends);
}

/* The association is lost in the middle of a message, and the program reads why, in this order. */
static void lost(int told, int drained)
{
	const int kinds[] = { SCTP_PARTIAL_DELIVERY_EVENT, SCTP_ASSOC_CHANGE, 0 };
	struct pollfd polled = { .events = POLLIN };
	int ends[2], flags, error = 0;
	socklen_t length = sizeof error;
	ssize_t got;

	pair(ends, told ? kinds : NULL, 0);
	if (told)
		CHECK(next(ends[1], SCTP_ASSOC_CHANGE)->sn_assoc_change.sac_state == SCTP_COMM_UP);
	CHECK(sctp_sendmsg(ends[0], "first", 5, NULL, 0, 0, 0, STREAM, 0, 0) == 5);
	CHECK(receive(ends[1], sizeof buffer, &flags, 20000) == 5);
	CHECK(sctp_sendmsg(ends[0], words, LONG, NULL, 0, 0, 0, STREAM, 0, 0) == LONG);
	CHECK(read_parts(ends[1], 20000, 20000, &flags) > 0);
	if (drained) {
		stopped = 1;
		CHECK(read_parts(ends[1], 200, LONG, &flags) == -1);
		stopped = 0;
	}
	aborts(ends[0]);
	polled.fd = ends[1];
	while (!(polled.revents & POLLHUP))
		CHECK(poll(&polled, 1, 20000) == 1);
	CHECK(polled.revents & POLLERR);
	got = read_parts(ends[1], 20000, LONG, &flags);
	if (told) {
		CHECK(got > 0);
		check_aborted();
		CHECK(next(ends[1], SCTP_ASSOC_CHANGE)->sn_assoc_change.sac_state == SCTP_COMM_LOST);
		CHECK(getsockopt(ends[1], SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNRESET);
	} else {
		CHECK(got == -1 && errno == ECONNRESET);
	}
	CHECK(recv(ends[1], buffer, sizeof buffer, 0) == 0);
	CHECK(poll(&polled, 1, 0) == 1 && !(polled.revents & POLLERR));
	close(ends[1]);
}

/* The peer's SHUTDOWN is told when it arrives, after the peer's last message, while data for the peer still waits. */
static void shut_down(void)
{
	const int kinds[] = { SCTP_SHUTDOWN_EVENT, 0 };
	struct sctp_status status = { 0 };
	socklen_t length = sizeof status;
	int ends[2], flags, events = 0;
	ssize_t got, sent = 0;

	pair(ends, kinds, 0);
	while ((got = send(ends[1], words, ROOM, MSG_DONTWAIT)) > 0)
		sent += got;
	CHECK(errno == EAGAIN);
	CHECK(send(ends[0], "last words", 10, 0) == 10);
	CHECK(shutdown(ends[0], SHUT_WR) == 0);
	CHECK(receive(ends[1], sizeof buffer, &flags, 20000) == 10 && flags == MSG_EOR);
	next(ends[1], SCTP_SHUTDOWN_EVENT);
	CHECK(getsockopt(ends[1], SOL_SCTP, SCTP_STATUS, &status, &length) == 0);
	CHECK(status.sstat_state == SCTP_SHUTDOWN_RECEIVED);
	FAILS(send(ends[1], "more", 4, MSG_NOSIGNAL | MSG_DONTWAIT), EPIPE);
	while ((got = recv(ends[0], buffer, sizeof buffer, 0)) > 0)
		sent -= got;
	CHECK(got == -1 && errno == ENOTCONN && sent == 0);
	while ((got = receive(ends[1], sizeof buffer, &flags, 20000)) > 0)
		events++;
	CHECK(got == 0 && events == 0);
	finish(ends);

	/* Without data that waits, once as well. */
	pair(ends, kinds, 0);
	CHECK(close(ends[0]) == 0);
	next(ends[1], SCTP_SHUTDOWN_EVENT);
	CHECK(receive(ends[1], sizeof buffer, &flags, 20000) == 0);
	CHECK(close(ends[1]) == 0);

	/* The end that has begun the shutdown is not told. */
	pair(ends, kinds, 0);
	CHECK(shutdown(ends[1], SHUT_WR) == 0);
	CHECK(receive(ends[0], sizeof buffer, &flags, 20000) == 0);
	CHECK(receive(ends[1], sizeof buffer, &flags, 20000) == 0);
	finish(ends);
}

/* A long message that was not delivered is given back whole, in parts as data is. */
static void given_back(void)
{
	struct sctp_send_failed_event event;
	int ends[2], flags = 0;
	size_t total = 0;

	pair(ends, NULL, 0);
	subscribe(ends[0], SCTP_SEND_FAILED_EVENT);
	stopped = 1;
	CHECK(sctp_sendmsg(ends[0], words, LONG, NULL, 0, 0, 0, STREAM, 0, 77) == LONG);
	stopped = 0;
	aborts(ends[1]);
	while (!(flags & MSG_EOR)) {
		size_t skip = total ? 0 : sizeof event;
		ssize_t got = receive(ends[0], 10000, &flags, 20000);

		CHECK(got > (ssize_t)skip && (flags & MSG_NOTIFICATION));
		if (!total)
			memcpy(&event, buffer, sizeof event);
		for (ssize_t i = skip; i < got; i++)
			CHECK(buffer[i] == 'B');
		total += got;
	}
	CHECK(event.ssf_type == SCTP_SEND_FAILED_EVENT && event.ssfe_info.snd_context == 77);
	CHECK(event.ssf_length == total && total == sizeof event + LONG);
	close(ends[0]);
}

int main(void)
{
	memset(words, 'B', sizeof words);
	for (int i = 0; i < 8; i++)
		abandoned(i & 1, i & 2, i & 4);
	for (int i = 0; i < 4; i++)
		lost(i & 1, i & 2);
	shut_down();
	given_back();
	puts("done");
	return 0;
}
