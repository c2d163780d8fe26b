/* One-to-one sockets: readiness, messages, ends. */
#include "common.h"

static void connects_without_waiting(void)
{
	struct sockaddr_in address, peer;
	socklen_t length = sizeof peer;
	int error = -1, server = listener(SOCK_STREAM, &address);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP);
	CHECK(client >= 0);
	CHECK(events_of(server, 0) == 0 || events_of(server, 0) == POLLOUT);
	CHECK(fcntl(server, F_SETFL, O_NONBLOCK) == 0);
	FAILS(accept(server, NULL, NULL), EAGAIN);
	FAILS(connect(client, SA(address), sizeof address), EINPROGRESS);
	await(client, POLLOUT);
	length = sizeof error;
	CHECK(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
	FAILS(connect(client, SA(address), sizeof address), EISCONN);
	await(server, POLLIN);
	length = sizeof peer;
	int accepted = accept4(server, SA(peer), &length, SOCK_NONBLOCK);
	CHECK(accepted >= 0 && peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	struct sockaddr_in own;
	length = sizeof own;
	CHECK(getsockname(client, SA(own), &length) == 0 && own.sin_port == peer.sin_port);
	length = sizeof own;
	CHECK(getpeername(client, SA(own), &length) == 0 && own.sin_port == address.sin_port);
	char byte;
	FAILS(read(accepted, &byte, 1), EAGAIN);
	FAILS(recv(client, &byte, 1, MSG_DONTWAIT), EAGAIN);
	close(client);
	await(accepted, POLLIN);
	CHECK(read(accepted, &byte, 1) == 0);
	CHECK(read(accepted, &byte, 1) == 0);
	close(accepted);
	close(server);
}

static void is_refused_without_a_listener(void)
{
	struct sockaddr_in address;
	int server = listener(SOCK_STREAM, &address), error = 0;
	/* The UDP port stays bound, so that this machine answers. */
	close(server);
	int client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	FAILS(connect(client, SA(address), sizeof address), ECONNREFUSED);
	CHECK(fcntl(client, F_SETFL, O_NONBLOCK) == 0);
	FAILS(connect(client, SA(address), sizeof address), EINPROGRESS);
	await(client, POLLIN);
	socklen_t length = sizeof error;
	CHECK(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNREFUSED);
	CHECK(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
	FAILS(send(client, "x", 1, MSG_NOSIGNAL), EPIPE);
	close(client);
}

static void keeps_the_bounds_of_messages(void)
{
	int ends[2];
	static char sent[65536], got[65536];
	connected(ends);
	for (size_t i = 0; i < sizeof sent; i++)
		sent[i] = (char)(i * 31 + i / 256);
	CHECK(write(ends[0], sent, sizeof sent) == sizeof sent);
	CHECK(write(ends[0], "next", 4) == 4);
	await(ends[1], POLLIN);
	int count = 0;
	CHECK(ioctl(ends[1], FIONREAD, &count) == 0 && count == sizeof sent);
	struct iovec vector[2] = { { got, 10 }, { got + 10, 30000 } };
	struct msghdr header = { .msg_iov = vector, .msg_iovlen = 2 };
	CHECK(recv(ends[1], got, 5, MSG_PEEK) == 5 && memcmp(got, sent, 5) == 0);
	CHECK(recvmsg(ends[1], &header, 0) == 30010 && !(header.msg_flags & MSG_EOR));
	vector[0] = (struct iovec){ got + 30010, sizeof got - 30010 };
	header.msg_iovlen = 1;
	CHECK(recvmsg(ends[1], &header, 0) == 65536 - 30010 && (header.msg_flags & MSG_EOR));
	CHECK(memcmp(sent, got, sizeof sent) == 0);
	CHECK(read(ends[1], got, sizeof got) == 4 && memcmp(got, "next", 4) == 0);
	FAILS(write(ends[0], sent, 0), EINVAL);
	struct iovec parts[2] = { { "ab", 2 }, { "cd", 2 } };
	CHECK(writev(ends[1], parts, 2) == 4);
	CHECK(readv(ends[0], (struct iovec[]){ { got, 3 }, { got + 3, 3 } }, 2) == 4);
	CHECK(memcmp(got, "abcd", 4) == 0);
	close(ends[0]);
	close(ends[1]);
}

static void a_full_socket_is_not_writable(void)
{
	int ends[2];
	static char piece[65536];
	connected(ends);
	CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
	size_t sent = 0, got = 0;
	ssize_t length;
	/* Until the peer's window and the own buffer are full. */
	for (int quiet = 0; quiet < 3;) {
		length = write(ends[0], piece, sizeof piece);
		if (length < 0) {
			CHECK(errno == EAGAIN);
			struct pollfd polled = { .fd = ends[0], .events = POLLOUT };
			quiet = poll(&polled, 1, 200) == 0 ? quiet + 1 : 0;
		} else {
			sent += length;
		}
	}
	CHECK(sent > sizeof piece);
	while (got < sent) {
		length = read(ends[1], piece, sizeof piece);
		CHECK(length > 0);
		got += length;
	}
	await(ends[0], POLLOUT);
	/* Alone, both directions wait by themselves. */
	CHECK(write(ends[0], piece, 100) == 100);
	CHECK(read(ends[1], piece, sizeof piece) == 100);
	close(ends[0]);
	close(ends[1]);
}

static void ends_are_seen(void)
{
	int ends[2];
	char bytes[16];
	connected(ends);
	CHECK(write(ends[0], "last", 4) == 4);
	CHECK(shutdown(ends[0], SHUT_WR) == 0);
	FAILS(send(ends[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK(read(ends[1], bytes, sizeof bytes) == 4);
	CHECK(read(ends[1], bytes, sizeof bytes) == 0);
	FAILS(read(ends[0], bytes, sizeof bytes), ENOTCONN);
	FAILS(send(ends[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	close(ends[0]);
	close(ends[1]);

	connected(ends);
	struct linger now = { 1, 0 };
	CHECK(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
	close(ends[0]);
	FAILS(read(ends[1], bytes, sizeof bytes), ECONNRESET);
	CHECK(read(ends[1], bytes, sizeof bytes) == 0);
	close(ends[1]);

	connected(ends);
	struct timeval wait = { 0, 50000 };
	CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0);
	FAILS(read(ends[0], bytes, sizeof bytes), EAGAIN);
	close(ends[1]);
	CHECK(read(ends[0], bytes, sizeof bytes) == 0);
	close(ends[0]);
}

/* A message that is longer than the receive buffer comes in parts, and its sender may abort meanwhile. */
static void a_message_in_parts_may_be_cut_short(void)
{
	static char bytes[1 << 20];
	for (int cut = 0; cut < 2; cut++) {
		struct sockaddr_in address = loopback(0);
		socklen_t length = sizeof address;
		int small = 40000, server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
		/* Another address, so that its buffer is its own. */
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
		CHECK(setsockopt(server, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
		CHECK(bind(server, SA(address), sizeof address) == 0 && listen(server, 1) == 0);
		CHECK(getsockname(server, SA(address), &length) == 0);
		int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
		CHECK(connect(near, SA(address), sizeof address) == 0);
		int far = accept(server, NULL, NULL);
		CHECK(far >= 0 && write(near, bytes, sizeof bytes) == sizeof bytes);
		struct iovec vector = { bytes, 20000 };
		struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };
		ssize_t got = recvmsg(far, &header, 0);
		CHECK(got > 0 && !(header.msg_flags & MSG_EOR));
		if (cut) {
			struct linger now = { 1, 0 };
			CHECK(setsockopt(near, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
			close(near);
			while ((got = read(far, bytes, sizeof bytes)) > 0)
				;
			CHECK(got == -1 && errno == ECONNRESET);
		} else {
			size_t all = got;
			vector.iov_len = sizeof bytes;
			while (!(header.msg_flags & MSG_EOR)) {
				got = recvmsg(far, &header, 0);
				CHECK(got > 0);
				all += got;
			}
			CHECK(all == sizeof bytes);
			close(near);
		}
		CHECK(read(far, bytes, sizeof bytes) == 0);
		close(far);
		close(server);
	}
}

static void raises_sigpipe(void)
{
	int ends[2];
	connected(ends);
	pid_t none = getpid();
	struct sigaction before, ignore = { .sa_handler = SIG_IGN };
	CHECK(sigaction(SIGPIPE, &ignore, &before) == 0);
	CHECK(shutdown(ends[0], SHUT_WR) == 0);
	FAILS(write(ends[0], "x", 1), EPIPE);
	CHECK(sigaction(SIGPIPE, &before, NULL) == 0 && getpid() == none);
	close(ends[0]);
	close(ends[1]);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

static void signals_interrupt_waiting(void)
{
	int ends[2];
	char byte;
	connected(ends);
	struct sigaction action = { .sa_handler = on_alarm };
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	struct itimerval soon = { .it_value = { 0, 100000 }, .it_interval = { 0, 100000 } };
	CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
	FAILS(read(ends[0], &byte, 1), EINTR);
	CHECK(alarms > 0);
	soon = (struct itimerval){ 0 };
	CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
	close(ends[0]);
	close(ends[1]);
}

static void edges_of_epoll_come_again(void)
{
	int ends[2], watch = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, seen;
	char bytes[64];
	connected(ends);
	CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
	CHECK(epoll_ctl(watch, EPOLL_CTL_ADD, ends[1], &event) == 0);
	for (int round = 0; round < 20; round++) {
		CHECK(write(ends[0], "edge", 4) == 4);
		CHECK(epoll_wait(watch, &seen, 1, 20000) == 1);
		CHECK(read(ends[1], bytes, sizeof bytes) == 4);
		FAILS(read(ends[1], bytes, sizeof bytes), EAGAIN);
	}
	CHECK(epoll_wait(watch, &seen, 1, 0) == 0);
	close(watch);
	close(ends[0]);
	close(ends[1]);
}

static void duplicates_share_a_socket(void)
{
	int ends[2];
	char bytes[16];
	connected(ends);
	int copy = dup(ends[0]);
	CHECK(copy >= 0 && close(ends[0]) == 0);
	CHECK(write(copy, "copy", 4) == 4);
	CHECK(read(ends[1], bytes, sizeof bytes) == 4);
	CHECK(dup2(copy, ends[0]) == ends[0] && close(copy) == 0);
	CHECK(write(ends[0], "dup2", 4) == 4);
	CHECK(read(ends[1], bytes, sizeof bytes) == 4);
	int other = fcntl(ends[0], F_DUPFD_CLOEXEC, 50);
	CHECK(other >= 50 && close(ends[0]) == 0);
	FAILS(write(ends[0], "gone", 4), EBADF);
	FILE *stream = fdopen(other, "r+");
	CHECK(stream && fprintf(stream, "by %s\n", "stdio") == 9 && fflush(stream) == 0);
	CHECK(read(ends[1], bytes, sizeof bytes) == 9);
	CHECK(write(ends[1], "line\n", 5) == 5);
	CHECK(fgets(bytes, sizeof bytes, stream) && strcmp(bytes, "line\n") == 0);
	CHECK(fclose(stream) == 0);
	CHECK(read(ends[1], bytes, sizeof bytes) == 0);
	close(ends[1]);
}

static void calls_that_fail_leave_the_socket_as_it_is(void)
{
	int ends[2];
	char bytes[16];
	connected(ends);
	FAILS(dup2(-1, ends[0]), EBADF);
	FAILS(dup2(1 << 20, ends[0]), EBADF);
	FAILS(dup3(-1, ends[0], O_CLOEXEC), EBADF);
	FAILS(dup3(STDIN_FILENO, ends[0], O_NONBLOCK), EINVAL);
	FAILS(dup3(ends[0], ends[0], 0), EINVAL);
	FAILS(dup2(ends[0], -1), EBADF);
	CHECK(dup2(ends[0], ends[0]) == ends[0]);
	FAILS(close_range(ends[0], ends[0], 1 << 10), EINVAL);
	CHECK(write(ends[0], "kept", 4) == 4);
	CHECK(read(ends[1], bytes, sizeof bytes) == 4);
	CHECK(write(ends[1], "kept", 4) == 4);
	CHECK(read(ends[0], bytes, sizeof bytes) == 4);
	/* A call that succeeds closes it. */
	CHECK(dup2(STDIN_FILENO, ends[0]) == ends[0]);
	CHECK(read(ends[1], bytes, sizeof bytes) == 0);
	CHECK(read(ends[0], bytes, sizeof bytes) == 0);
	close(ends[0]);
	close(ends[1]);
}

/* The address sanitizer reads and writes structures itself, around each of these calls. */
#ifdef __SANITIZE_ADDRESS__
static void wrong_pointers_to_structures_are_errors(void) {}
#else
static void wrong_pointers_to_structures_are_errors(void)
{
	int ends[2], value = 0;
	char *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes[16];
	struct sockaddr_in address = loopback(0);
	struct iovec whole = { bytes, sizeof bytes };
	socklen_t length = sizeof value;
	struct msghdr good = { .msg_iov = &whole, .msg_iovlen = 1 }, wrong;
	CHECK(bad != MAP_FAILED);
	connected(ends);
	int fresh = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	FAILS(bind(fresh, (void *)bad, sizeof address), EFAULT);
	FAILS(connect(fresh, (void *)bad, sizeof address), EFAULT);
	FAILS(sendto(ends[0], "x", 1, 0, (void *)bad, sizeof address), EFAULT);
	FAILS(getsockname(ends[0], (void *)bytes, (void *)bad), EFAULT);
	FAILS(getsockname(ends[0], (void *)bad, &(socklen_t){ 16 }), EFAULT);
	FAILS(getpeername(ends[0], (void *)bad, &(socklen_t){ 16 }), EFAULT);
	FAILS(setsockopt(ends[0], IPPROTO_SCTP, SCTP_NODELAY, bad, sizeof value), EFAULT);
	FAILS(getsockopt(ends[0], IPPROTO_SCTP, SCTP_NODELAY, bad, &length), EFAULT);
	FAILS(getsockopt(ends[0], IPPROTO_SCTP, SCTP_NODELAY, &value, (void *)bad), EFAULT);
	FAILS(ioctl(ends[0], FIONREAD, bad), EFAULT);
	FAILS(writev(ends[0], (void *)bad, 1), EFAULT);
	FAILS(readv(ends[0], (void *)bad, 1), EFAULT);
	FAILS(sendmsg(ends[0], (void *)bad, 0), EFAULT);
	FAILS(recvmsg(ends[0], (void *)bad, MSG_DONTWAIT), EFAULT);
	FAILS(sendmmsg(ends[0], (void *)bad, 1, 0), EFAULT);
	FAILS(recvmmsg(ends[0], (void *)bad, 1, MSG_DONTWAIT, NULL), EFAULT);
	wrong = good, wrong.msg_iov = (void *)bad;
	FAILS(sendmsg(ends[0], &wrong, 0), EFAULT);
	wrong = good, wrong.msg_control = bad, wrong.msg_controllen = 64;
	FAILS(sendmsg(ends[0], &wrong, 0), EFAULT);
	wrong = good, wrong.msg_name = bad, wrong.msg_namelen = sizeof address;
	FAILS(sendmsg(ends[0], &wrong, 0), EFAULT);
	/* Nothing was lost, and nothing was sent. */
	CHECK(write(ends[0], "kept", 4) == 4);
	CHECK(recvmsg(ends[1], &good, 0) == 4);
	FAILS(recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT), EAGAIN);
	CHECK(munmap(bad, 4096) == 0);
	close(fresh);
	close(ends[0]);
	close(ends[1]);
}
#endif

/* As in the kernel, one more waits than `listen` says. Both those who ask one after the other and those who ask at once
   are refused while the queue is full. */
static void a_full_accept_queue_refuses(int at_once)
{
	enum { BACKLOG = 2, CLIENTS = 8 };
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	int clients[CLIENTS], server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), refused = 0;
	char byte;
	CHECK(bind(server, SA(address), sizeof address) == 0 && listen(server, BACKLOG) == 0);
	CHECK(getsockname(server, SA(address), &length) == 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < CLIENTS; i++) {
			clients[i] = socket(AF_INET, SOCK_STREAM | (at_once ? SOCK_NONBLOCK : 0), IPPROTO_SCTP);
			int result = connect(clients[i], SA(address), sizeof address);
			if (at_once) {
				CHECK(result == -1 && errno == EINPROGRESS);
			} else {
				CHECK(i <= BACKLOG ? result == 0 : result == -1 && errno == ECONNREFUSED);
				refused += result;
			}
		}
		for (int i = 0; i < CLIENTS && at_once; i++) {
			int error;
			await(clients[i], POLLOUT);
			length = sizeof error;
			CHECK(getsockopt(clients[i], SOL_SOCKET, SO_ERROR, &error, &length) == 0);
			CHECK(error == 0 || error == ECONNREFUSED);
			refused -= error != 0;
		}
		CHECK(refused == -(round + 1) * (CLIENTS - BACKLOG - 1));
		for (int i = 0; i <= BACKLOG; i++) {
			int end = accept(server, NULL, NULL);
			CHECK(end >= 0 && write(end, "x", 1) == 1);
			close(end);
		}
		/* Those who were not refused were accepted. */
		int served = 0;
		for (int i = 0; i < CLIENTS; i++) {
			CHECK(fcntl(clients[i], F_SETFL, 0) == 0);
			served += read(clients[i], &byte, 1) == 1;
			close(clients[i]);
		}
		CHECK(served == BACKLOG + 1);
	}
	close(server);
}

/* POLLERR and POLLHUP come without being asked for. */
static int losses_of(int fd, int wait_ms)
{
	struct pollfd polled = { .fd = fd, .events = 0 };
	CHECK(poll(&polled, 1, wait_ms) >= 0);
	return polled.revents;
}

/* Ends an association by an ABORT. */
static void abort_of(int fd)
{
	struct linger now = { 1, 0 };
	CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
	CHECK(close(fd) == 0);
}

/* `unread`: a message that has arrived before is still read. `full`: the send buffer is full. */
static void the_loss_of_an_association_is_shown(int unread, int full)
{
	int ends[2], error;
	socklen_t length = sizeof error;
	char bytes[8];
	static char many[1 << 16];
	connected(ends);
	int waiting = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLET }, found;
	CHECK(epoll_ctl(waiting, EPOLL_CTL_ADD, ends[0], &event) == 0);
	CHECK(epoll_wait(waiting, &found, 1, 0) == 0 && losses_of(ends[0], 0) == 0);
	if (unread) {
		CHECK(write(ends[1], "unread", 6) == 6);
		await(ends[0], POLLIN);
	}
	CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
	while (full && write(ends[0], many, sizeof many) > 0)
		;
	abort_of(ends[1]);
	CHECK(epoll_wait(waiting, &found, 1, 20000) == 1);
	CHECK(found.events == (EPOLLERR | EPOLLHUP));
	CHECK(losses_of(ends[0], 0) == (POLLERR | POLLHUP));
	if (unread)
		CHECK(read(ends[0], bytes, sizeof bytes) == 6);
	if (full) {
		FAILS(send(ends[0], "x", 1, MSG_NOSIGNAL), ECONNRESET);
	} else if (unread) {
		FAILS(read(ends[0], bytes, sizeof bytes), ECONNRESET);
	} else {
		CHECK(getsockopt(ends[0], SOL_SOCKET, SO_ERROR, &error, &length) == 0);
		CHECK(error == ECONNRESET);
	}
	/* The error was told; the association stays lost. */
	CHECK(losses_of(ends[0], 0) == POLLHUP);
	CHECK(getsockopt(ends[0], SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
	CHECK(read(ends[0], bytes, sizeof bytes) == 0);
	FAILS(send(ends[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK(losses_of(ends[0], 0) == POLLHUP);
	close(waiting);
	close(ends[0]);
}

/* A shutdown loses nothing. */
static void a_shutdown_is_no_loss(void)
{
	int ends[2];
	connected(ends);
	close(ends[1]);
	await(ends[0], POLLIN);
	CHECK((losses_of(ends[0], 100) & POLLERR) == 0);
	close(ends[0]);
}

/* Programs that register a listener for reading and writing, as osmo-stp does, would spin otherwise. */
static void a_listener_is_never_writable(void)
{
	struct sockaddr_in address;
	int server = listener(SOCK_STREAM, &address), client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), accepted;

	CHECK(events_of(server, 100) == 0);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	await(server, POLLIN);
	CHECK(events_of(server, 0) == POLLIN);
	accepted = accept(server, NULL, NULL);
	CHECK(accepted >= 0 && events_of(accepted, 0) == POLLOUT);
	CHECK(events_of(server, 100) == 0);
	close(client);
	close(accepted);
	close(server);
}

/* Data that arrives after close is acknowledged and thrown away, so that both ends can end. */
static void late_data_does_not_keep_a_closed_end(void)
{
	static char message[65536];
	struct linger linger = { .l_onoff = 1, .l_linger = 100 };
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	int size = 100000, accepted;

	CHECK(setsockopt(server, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) == 0);
	CHECK(bind(server, SA(address), sizeof address) == 0 && listen(server, 1) == 0);
	CHECK(getsockname(server, SA(address), &length) == 0);
	CHECK(setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	accepted = accept(server, NULL, NULL);
	while (send(client, message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	CHECK(errno == EAGAIN);
	await(accepted, POLLIN);
	while (recv(accepted, message, sizeof message, MSG_DONTWAIT) > 0)
		;
	/* Ends the program if close waits for ever. */
	alarm(30);
	CHECK(close(accepted) == 0 && close(client) == 0);
	alarm(0);
	close(server);
}

int main(void)
{
	a_listener_is_never_writable();
	for (int i = 0; i < 5; i++)
		late_data_does_not_keep_a_closed_end();
	connects_without_waiting();
	is_refused_without_a_listener();
	keeps_the_bounds_of_messages();
	a_full_socket_is_not_writable();
	ends_are_seen();
	a_message_in_parts_may_be_cut_short();
	raises_sigpipe();
	signals_interrupt_waiting();
	edges_of_epoll_come_again();
	duplicates_share_a_socket();
	calls_that_fail_leave_the_socket_as_it_is();
	wrong_pointers_to_structures_are_errors();
	the_loss_of_an_association_is_shown(0, 0);
	the_loss_of_an_association_is_shown(1, 0);
	the_loss_of_an_association_is_shown(0, 1);
	a_shutdown_is_no_loss();
	a_full_accept_queue_refuses(0);
	a_full_accept_queue_refuses(1);
	puts("done");
	return 0;
}
