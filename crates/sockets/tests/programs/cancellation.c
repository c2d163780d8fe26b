/* Threads that end in a call: cancelled, or by a signal handler (POSIX.1-2017, 2.9.5). Other threads go on with the socket. */
#include "relay.h"

#include <sys/select.h>
#include <sys/uio.h>

enum how { DEFERRED, ASYNCHRONOUS, DISABLED, BY_HANDLER, BEFORE, WAYS };
enum { LENGTH = 1000, SMALL = 20000 };

static int ends[2] = { -1, -1 }, server, client;
static size_t expected;
static struct sockaddr_in address;
static char bytes[LENGTH];
static struct iovec vector = { bytes, sizeof bytes };
static struct mmsghdr message = { .msg_hdr = { .msg_iov = &vector, .msg_iovlen = 1 } };

/* Two ends with small buffers. */
static void make_pair(int relayed)
{
	int small = SMALL, listening = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	socklen_t length = sizeof address;

	CHECK(setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
	address = loopback(0);
	CHECK(bind(listening, SA(address), sizeof address) == 0 && listen(listening, 8) == 0);
	CHECK(getsockname(listening, SA(address), &length) == 0);
	ends[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
	if (relayed)
		through_relay(ends[0]);
	CHECK(connect(ends[0], SA(address), sizeof address) == 0);
	ends[1] = accept(listening, NULL, NULL);
	CHECK(ends[1] >= 0 && close(listening) == 0);
	expected = 0;
}

/* Receiving. */
static void make_receiver(void) { make_pair(0); }
static void send_one(void) { CHECK(write(ends[0], bytes, LENGTH) == LENGTH); }
static void end_receiver(void)
{
	FAILS(recv(ends[1], bytes, LENGTH, MSG_DONTWAIT), EAGAIN);
	CHECK(write(ends[1], "x", 1) == 1 && read(ends[0], bytes, LENGTH) == 1);
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}
static int by_read(void) { return read(ends[1], bytes, LENGTH) == LENGTH; }
static int by_readv(void) { return readv(ends[1], &vector, 1) == LENGTH; }
static int by_recv(void) { return recv(ends[1], bytes, LENGTH, 0) == LENGTH; }
static int by_recvfrom(void) { return recvfrom(ends[1], bytes, LENGTH, 0, NULL, NULL) == LENGTH; }
static int by_recvmsg(void) { return recvmsg(ends[1], &message.msg_hdr, 0) == LENGTH; }
static int by_recvmmsg(void) { return recvmmsg(ends[1], &message, 1, 0, NULL) == 1; }
static int by_sctp_recvmsg(void) { return sctp_recvmsg(ends[1], bytes, LENGTH, NULL, NULL, NULL, NULL) == LENGTH; }
static int by_sctp_recvv(void)
{
	return sctp_recvv(ends[1], &vector, 1, NULL, NULL, NULL, NULL, NULL, NULL) == LENGTH;
}

/* Waiting, then receiving. */
static int by_poll(void)
{
	struct pollfd polled = { .fd = ends[1], .events = POLLIN };

	return poll(&polled, 1, -1) == 1 && by_read();
}
static int by_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[1], &set);
	return select(ends[1] + 1, &set, NULL, NULL, NULL) == 1 && by_read();
}
static int by_epoll(void)
{
	static int epoll = -1;
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll < 0)
		epoll = epoll_create1(0);
	CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[1], &event) == 0 || errno == EEXIST);
	return epoll_wait(epoll, &event, 1, -1) == 1 && by_read();
}

/* Sending with a full send buffer. */
static void make_sender(void)
{
	struct pollfd polled;

	make_pair(0);
	/* Until the peer's window and the own buffer are full. */
	do {
		while (send(ends[0], bytes, LENGTH, MSG_DONTWAIT) == LENGTH)
			expected += LENGTH;
		CHECK(errno == EAGAIN);
		polled = (struct pollfd){ .fd = ends[0], .events = POLLOUT };
	} while (poll(&polled, 1, 200) > 0);
}
static void make_room(void)
{
	while (!(events_of(ends[0], 0) & POLLOUT)) {
		await(ends[1], POLLIN);
		CHECK(read(ends[1], bytes, LENGTH) == LENGTH);
		expected -= LENGTH;
	}
}
static void end_sender(void)
{
	CHECK(shutdown(ends[0], SHUT_WR) == 0);
	for (ssize_t got; (got = read(ends[1], bytes, LENGTH)) > 0; expected -= got)
		;
	/* One call has sent a message. */
	CHECK(expected == (size_t)-LENGTH);
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}
static int by_write(void) { return write(ends[0], bytes, LENGTH) == LENGTH; }
static int by_writev(void) { return writev(ends[0], &vector, 1) == LENGTH; }
static int by_send(void) { return send(ends[0], bytes, LENGTH, 0) == LENGTH; }
static int by_sendto(void) { return sendto(ends[0], bytes, LENGTH, 0, NULL, 0) == LENGTH; }
static int by_sendmsg(void) { return sendmsg(ends[0], &message.msg_hdr, 0) == LENGTH; }
static int by_sendmmsg(void) { return sendmmsg(ends[0], &message, 1, 0) == 1; }
static int by_sctp_sendmsg(void) { return sctp_sendmsg(ends[0], bytes, LENGTH, NULL, 0, 0, 0, 0, 0, 0) == LENGTH; }
static int by_sctp_send(void) { return sctp_send(ends[0], bytes, LENGTH, NULL, 0) == LENGTH; }
static int by_sctp_sendv(void)
{
	return sctp_sendv(ends[0], &vector, 1, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) == LENGTH;
}

/* Accepting. */
static void make_listener(void) { server = listener(SOCK_STREAM, &address); }
static void open_one(void)
{
	client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(connect(client, SA(address), sizeof address) == 0);
}
static void end_listener(void)
{
	CHECK(ends[1] >= 0 && write(client, "x", 1) == 1 && read(ends[1], bytes, LENGTH) == 1);
	CHECK(close(client) == 0 && close(ends[1]) == 0 && close(server) == 0);
}
static int by_accept(void) { return (ends[1] = accept(server, NULL, NULL)) >= 0; }
static int by_accept4(void) { return (ends[1] = accept4(server, NULL, NULL, SOCK_CLOEXEC)) >= 0; }

/* Connecting through a relay that is stopped. */
static void make_client(void)
{
	make_listener();
	client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	through_relay(client);
	stopped = 1;
}
static void let_through(void) { stopped = 0; }
static int by_connect(void)
{
	/* The handshake that a thread has begun goes on. */
	if (connect(client, SA(address), sizeof address) == 0)
		return 1;
	CHECK(errno == EALREADY || errno == EISCONN);
	await(client, POLLOUT);
	return 1;
}
static void end_client(void)
{
	CHECK(by_accept());
	end_listener();
}

/* Closing while the peer does not acknowledge. */
static void make_lingering(void)
{
	struct linger linger = { 1, 60 };

	make_pair(1);
	CHECK(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
	stopped = 1;
	send_one();
}
static int by_close(void)
{
	/* A thread that waits for the end of the association has closed the socket. */
	return close(ends[0]) == 0 || errno == EBADF;
}
static void end_lingering(void)
{
	FAILS(fcntl(ends[0], F_GETFD), EBADF);
	CHECK(by_read() && read(ends[1], bytes, LENGTH) == 0 && close(ends[1]) == 0);
}

#define RECEIVES(how) { #how, make_receiver, how, send_one, end_receiver }
#define SENDS(how) { #how, make_sender, how, make_room, end_sender }
#define ACCEPTS(how) { #how, make_listener, how, open_one, end_listener }

static const struct call {
	const char *name;
	void (*make)(void);
	int (*run)(void);
	void (*let_finish)(void);
	void (*end)(void);
} calls[] = {
	RECEIVES(by_read), RECEIVES(by_readv), RECEIVES(by_recv), RECEIVES(by_recvfrom), RECEIVES(by_recvmsg),
	RECEIVES(by_recvmmsg), RECEIVES(by_sctp_recvmsg), RECEIVES(by_sctp_recvv), RECEIVES(by_poll),
	RECEIVES(by_select), RECEIVES(by_epoll), SENDS(by_write), SENDS(by_writev), SENDS(by_send),
	SENDS(by_sendto), SENDS(by_sendmsg), SENDS(by_sendmmsg), SENDS(by_sctp_sendmsg), SENDS(by_sctp_send),
	SENDS(by_sctp_sendv), ACCEPTS(by_accept), ACCEPTS(by_accept4),
	{ "connect", make_client, by_connect, let_through, end_client },
	{ "close", make_lingering, by_close, let_through, end_lingering },
};

static const struct call *call;
static enum how how;
static _Atomic int cleaned, thread_id, succeeded;

static void cleans(void *argument)
{
	(void)argument;
	cleaned++;
}

static void ends_thread(int signal)
{
	(void)signal;
	pthread_exit(PTHREAD_CANCELED);
}

static void *runs(void *argument)
{
	(void)argument;
	pthread_cleanup_push(cleans, NULL);
	if (how == DISABLED)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (how == ASYNCHRONOUS)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	if (how == BEFORE)
		pthread_cancel(pthread_self());
	thread_id = gettid();
	succeeded = call->run();
	if (how == DISABLED)
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return NULL;
}

/* Waits until the thread sleeps, several times in a row. */
static void await_sleep(void)
{
	char path[64], line[256];

	for (int asleep = 0; asleep < 5; usleep(2000)) {
		FILE *file;

		if (!thread_id)
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread_id);
		CHECK((file = fopen(path, "r")) && fgets(line, sizeof line, file));
		fclose(file);
		asleep = strstr(line, ") S ") ? asleep + 1 : 0;
	}
}

static void check(void)
{
	pthread_t thread;
	void *result;

	cleaned = thread_id = succeeded = 0;
	call->make();
	if (how == BEFORE)
		call->let_finish();
	CHECK(pthread_create(&thread, NULL, runs, NULL) == 0);
	if (how != BEFORE) {
		await_sleep();
		CHECK((how == BY_HANDLER ? pthread_kill(thread, SIGUSR1) : pthread_cancel(thread)) == 0);
	}
	if (how == DISABLED) {
		usleep(10000);
		CHECK(!succeeded && !cleaned);
		call->let_finish();
	}
	CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED && cleaned == 1);
	CHECK(succeeded == (how == DISABLED));
	/* The thread has taken nothing with it. */
	if (how != DISABLED) {
		if (how != BEFORE)
			call->let_finish();
		CHECK(call->run());
	}
	call->end();
}

static void says_where(int status, void *argument)
{
	(void)argument;
	if (status != 0)
		fprintf(stderr, "%s, way %d\n", call->name, how);
}

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

int main(void)
{
	struct sigaction action = { .sa_handler = ends_thread };
	int before;

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && on_exit(says_where, NULL) == 0);
	for (call = calls; call < calls + sizeof calls / sizeof *calls; call++)
		for (how = 0; how < WAYS; how++)
			check();
	/* Threads leave no descriptors behind. */
	before = descriptors();
	for (int i = 0; i < 20; i++) {
		how = i % 2 ? DEFERRED : BY_HANDLER;
		call = &calls[i % 22];
		check();
	}
	CHECK(descriptors() <= before + 4);
	puts("done");
	return 0;
}
