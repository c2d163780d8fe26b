/* Programs that share their sockets with children, or go to the background. */
#include "common.h"

#include <sys/prctl.h>

/* Runs a part of the program in a process of its own, which must succeed. */
static void apart(void (*run)(void))
{
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		run();
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Each child of a prefork server waits at the socket of its parent. */
static void a_child_cannot_serve_its_parents_socket(void)
{
	struct sockaddr_in address;
	int status = -1, server = listener(SOCK_SEQPACKET, &address);
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		char bytes[100];

		FAILS(recv(server, bytes, sizeof bytes, 0), EBADF);
		FAILS(sctp_sendmsg(server, "x", 1, SA(address), sizeof address, 0, 0, 0, 0, 0), EBADF);
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void daemon_is_refused_after_sockets_are_used(void)
{
	struct sockaddr_in address;

	listener(SOCK_STREAM, &address);
	FAILS(daemon(1, 1), EOPNOTSUPP);
}

/* What daemon does, by hand. The child lives until the pipe ends. */
static int ends[2];

static void leaves_a_child(void (*leave)(int))
{
	struct sockaddr_in address;
	pid_t child;
	char byte;

	listener(SOCK_STREAM, &address);
	child = fork();
	CHECK(child >= 0);
	if (child > 0)
		leave(0);
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 0);
	_exit(0);
}
static void leaves_by_exit(void) { leaves_a_child(exit); }
static void leaves_by__exit(void) { leaves_a_child(_exit); }

static void a_process_that_leaves_its_sockets_behind_says_so(void (*how)(void))
{
	int status = -1;

	CHECK(pipe(ends) == 0);
	apart(how);
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
	CHECK(wait(&status) > 0 && status == 0);
}

/* A child that has ended, and one that is not the end of its parent. */
static void nothing_is_said_of_other_children(void)
{
	struct sockaddr_in address;
	int status = -1, server = listener(SOCK_STREAM, &address);
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		_exit(0);
	CHECK(waitpid(child, &status, 0) == child && status == 0 && close(server) == 0);
	listener(SOCK_STREAM, &address);
}

/* Sockets that neither listen nor connect yet go to the background with the program. */
static void goes_to_the_background_before(void)
{
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), near;
	char byte;

	CHECK(bind(server, SA(address), sizeof address) == 0);
	CHECK(daemon(1, 1) == 0);
	CHECK(listen(server, 1) == 0 && getsockname(server, SA(address), &length) == 0);
	near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(connect(near, SA(address), sizeof address) == 0 && write(near, "x", 1) == 1);
	CHECK(read(accept(server, NULL, NULL), &byte, 1) == 1);
}

int main(void)
{
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	apart(nothing_is_said_of_other_children);
	apart(a_child_cannot_serve_its_parents_socket);
	apart(daemon_is_refused_after_sockets_are_used);
	a_process_that_leaves_its_sockets_behind_says_so(leaves_by_exit);
	a_process_that_leaves_its_sockets_behind_says_so(leaves_by__exit);
	goes_to_the_background_before();
	puts("done");
	return 0;
}
