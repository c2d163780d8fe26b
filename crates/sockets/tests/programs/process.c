/* Children and threads. */
#include "common.h"

static void children_cannot_use_what_they_inherit(void)
{
	int ends[2];
	char byte[4];
	connected(ends);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		FAILS(read(ends[0], byte, 1), EBADF);
		FAILS(write(ends[1], "x", 1), EBADF);
		int error = 0;
		socklen_t length = sizeof error;
		FAILS(getsockopt(ends[0], SOL_SOCKET, SO_ERROR, &error, &length), EBADF);
		CHECK(close(ends[0]) == 0);
		/* What it makes itself works. */
		int own[2];
		setenv("ROPEWALK_UDP_PORT", getenv("CHILD_UDP_PORT"), 1);
		setenv("ROPEWALK_PEER_UDP_PORT", getenv("CHILD_UDP_PORT"), 1);
		connected(own);
		CHECK(write(own[0], "own", 3) == 3);
		CHECK(read(own[1], byte, sizeof byte) == 3);
		exit(0);
	}
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(write(ends[0], "on", 2) == 2);
	CHECK(read(ends[1], byte, sizeof byte) == 2);
	/* A program that is executed has no trace of them. */
	CHECK(system("true") == 0);
	CHECK(write(ends[1], "on", 2) == 2);
	CHECK(read(ends[0], byte, sizeof byte) == 2);
	close(ends[0]);
	close(ends[1]);
}

/* A daemon binds its port, and goes to the background then. */
static void a_bound_socket_survives_a_fork(void)
{
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(bind(server, SA(address), sizeof address) == 0);
	CHECK(getsockname(server, SA(address), &length) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		char byte;
		setenv("ROPEWALK_UDP_PORT", getenv("CHILD_UDP_PORT"), 1);
		setenv("ROPEWALK_PEER_UDP_PORT", getenv("CHILD_UDP_PORT"), 1);
		CHECK(listen(server, 1) == 0);
		int near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
		CHECK(connect(near, SA(address), sizeof address) == 0);
		int far = accept(server, NULL, NULL);
		CHECK(write(near, "x", 1) == 1 && read(far, &byte, 1) == 1);
		exit(0);
	}
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	close(server);
}

enum { THREADS = 8, ROUNDS = 200 };

static struct sockaddr_in address;

static void *echoes(void *argument)
{
	int fd = *(int *)argument;
	char bytes[2000];
	ssize_t length;
	while ((length = read(fd, bytes, sizeof bytes)) > 0)
		CHECK(write(fd, bytes, length) == length);
	CHECK(length == 0);
	close(fd);
	free(argument);
	return NULL;
}

static void *asks(void *argument)
{
	char sent[2000], got[2000];
	(void)argument;
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(connect(fd, SA(address), sizeof address) == 0);
	for (int round = 1; round <= ROUNDS; round++) {
		memset(sent, round, sizeof sent);
		CHECK(write(fd, sent, round * 10) == round * 10);
		CHECK(read(fd, got, sizeof got) == round * 10);
		CHECK(memcmp(sent, got, round * 10) == 0);
	}
	close(fd);
	return NULL;
}

static void threads_do_not_disturb_each_other(void)
{
	pthread_t threads[2 * THREADS];
	int server = listener(SOCK_STREAM, &address);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, asks, NULL) == 0);
	for (int i = 0; i < THREADS; i++) {
		int *fd = malloc(sizeof *fd);
		*fd = accept(server, NULL, NULL);
		CHECK(*fd >= 0);
		CHECK(pthread_create(&threads[THREADS + i], NULL, echoes, fd) == 0);
	}
	for (int i = 0; i < 2 * THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	close(server);
}

/* Two threads that send and two that receive share one socket. */
static int shared[2];
static _Atomic long received;

static void *sends(void *argument)
{
	(void)argument;
	for (int i = 0; i < 2000; i++)
		CHECK(write(shared[0], "12345678", 8) == 8);
	return NULL;
}

static void *receives(void *argument)
{
	char bytes[64];
	ssize_t length;
	(void)argument;
	while ((length = read(shared[1], bytes, sizeof bytes)) > 0) {
		CHECK(length == 8 && memcmp(bytes, "12345678", 8) == 0);
		received++;
	}
	CHECK(length == 0);
	return NULL;
}

static void threads_share_a_socket(void)
{
	pthread_t threads[4];
	connected(shared);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, i < 2 ? sends : receives, NULL) == 0);
	CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
	CHECK(shutdown(shared[0], SHUT_WR) == 0);
	CHECK(pthread_join(threads[2], NULL) == 0 && pthread_join(threads[3], NULL) == 0);
	CHECK(received == 4000);
	close(shared[0]);
	close(shared[1]);
}

/* A child that does not use the sockets of its parent lives until the pipe ends, as itself or as another program. */
static void lives(int ends[2], int executes)
{
	char byte;

	CHECK(close(ends[1]) == 0);
	if (executes) {
		CHECK(dup2(ends[0], 0) == 0);
		execlp("cat", "cat", NULL);
	}
	while (read(ends[0], &byte, 1) > 0)
		;
	_exit(0);
}

/* A process with sockets and a child. */
static void has_a_child(int ends[2], int executes)
{
	struct pollfd lost = { .events = POLLIN | POLLOUT };
	struct linger linger = { 1, 0 };
	int sockets[2];
	pid_t child;

	connected(sockets);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		lives(ends, executes);
	/* The child's copies do not hide the loss of an association. */
	lost.fd = sockets[0];
	CHECK(setsockopt(sockets[1], SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0 && close(sockets[1]) == 0);
	for (int i = 0; i < 10000 && lost.revents != (POLLIN | POLLOUT | POLLERR | POLLHUP); i++)
		CHECK(usleep(1000) == 0 && poll(&lost, 1, 0) >= 0);
	CHECK(lost.revents == (POLLIN | POLLOUT | POLLERR | POLLHUP));
	_exit(0);
}

static void ports_are_free_after_the_end_of_their_process(int executes)
{
	struct sockaddr_in address = loopback(atoi(getenv("ROPEWALK_UDP_PORT")));
	int ends[2], status = -1, udp;
	pid_t owner;

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	owner = fork();
	CHECK(owner >= 0);
	if (owner == 0)
		has_a_child(ends, executes);
	CHECK(waitpid(owner, &status, 0) == owner && status == 0);
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(bind(udp, SA(address), sizeof address) == 0);
	CHECK(close(udp) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(void)
{
	ports_are_free_after_the_end_of_their_process(0);
	ports_are_free_after_the_end_of_their_process(1);
	a_bound_socket_survives_a_fork();
	children_cannot_use_what_they_inherit();
	threads_do_not_disturb_each_other();
	threads_share_a_socket();
	puts("done");
	return 0;
}
