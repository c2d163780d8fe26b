/* What the test programs share. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netinet/sctp.h>

/* Ends the program if something is not as it must be. */
#define CHECK(what)                                                                                          \
	do {                                                                                                 \
		if (!(what)) {                                                                               \
			fprintf(stderr, "%s:%d: %s (errno: %s)\n", __FILE__, __LINE__, #what, strerror(errno)); \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)
#define FAILS(what, number)                  \
	do {                                 \
		errno = 0;                   \
		CHECK((what) == -1);         \
		CHECK(errno == (number));    \
	} while (0)

static inline struct sockaddr_in loopback(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

#define SA(address) ((struct sockaddr *)&(address))

static inline int events_of(int fd, int wait_ms)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN | POLLOUT };
	CHECK(poll(&polled, 1, wait_ms) >= 0);
	return polled.revents;
}

/* Waits until a descriptor is readable or writable. */
static inline void await(int fd, int event)
{
	struct pollfd polled = { .fd = fd, .events = event };
	CHECK(poll(&polled, 1, 20000) == 1);
}

/* A socket that listens on a free port of this machine. */
static inline int listener(int type, struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, type, IPPROTO_SCTP);
	CHECK(fd >= 0);
	*address = loopback(0);
	CHECK(bind(fd, SA(*address), sizeof *address) == 0);
	CHECK(listen(fd, 8) == 0);
	CHECK(getsockname(fd, SA(*address), &length) == 0);
	CHECK(length == sizeof *address && address->sin_port != 0);
	return fd;
}

/* Two ends of an association. */
static inline void connected(int ends[2])
{
	struct sockaddr_in address;
	int fd = listener(SOCK_STREAM, &address);
	ends[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(ends[0] >= 0);
	CHECK(connect(ends[0], SA(address), sizeof address) == 0);
	ends[1] = accept(fd, NULL, NULL);
	CHECK(ends[1] >= 0);
	CHECK(close(fd) == 0);
}
