/* What the programs share that walk all calls in all states of a socket. */
#include "common.h"

enum { LENGTH = 4, TEXT = 128 };

static int protocol = IPPROTO_SCTP, type = SOCK_STREAM, pause_us;

static int make(void)
{
	int fd = socket(AF_INET, type | SOCK_NONBLOCK, protocol);

	CHECK(fd >= 0);
	return fd;
}

/* Waits until poll shows the same for a while. */
static int settled(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };
	int last = -1;

	for (int same = 0; same < 4; same++) {
		CHECK(poll(&polled, 1, 0) >= 0);
		if (polled.revents != last)
			same = 0;
		last = polled.revents;
		usleep(pause_us);
	}
	return last;
}

/* The socket of a state, and others that belong to it. */
struct sockets {
	int fd, peer, other[4];
	struct sockaddr_in address;
};

static void close_all(struct sockets *s)
{
	for (int *fd = &s->fd; fd < &s->other[4]; fd++)
		if (*fd >= 0)
			close(*fd);
}

static int bound(struct sockaddr_in *address)
{
	int fd = make();
	socklen_t length = sizeof *address;

	*address = loopback(0);
	CHECK(bind(fd, SA(*address), sizeof *address) == 0);
	CHECK(getsockname(fd, SA(*address), &length) == 0);
	return fd;
}

/* Appends what a call has returned. */
static void note(char *text, long result)
{
	size_t at = strlen(text);

	if (result < 0)
		snprintf(text + at, TEXT - at, "%s ", strerrorname_np(errno));
	else
		snprintf(text + at, TEXT - at, "%ld ", result);
}

static void by_poll(struct sockets *s, char *text)
{
	int shown = settled(s->fd);
	static const struct { int bit; const char *name; } bits[] = {
		{ POLLIN, "IN " }, { POLLOUT, "OUT " }, { POLLRDHUP, "RDHUP " }, { POLLHUP, "HUP " }, { POLLERR, "ERR " },
	};

	for (unsigned i = 0; i < sizeof bits / sizeof *bits; i++)
		if (shown & bits[i].bit)
			strcat(text, bits[i].name);
}
static void by_recv(struct sockets *s, char *text)
{
	char bytes[100];

	for (int i = 0; i < 3; i++)
		note(text, recv(s->fd, bytes, sizeof bytes, 0));
}
static void by_peek(struct sockets *s, char *text)
{
	char bytes[100];

	for (int i = 0; i < 2; i++)
		note(text, recv(s->fd, bytes, sizeof bytes, MSG_PEEK));
}
/* As by_recv, with a socket that waits, but not for long. */
static void by_waiting_recv(struct sockets *s, char *text)
{
	struct timeval limit = { .tv_usec = 20000 };

	CHECK(fcntl(s->fd, F_SETFL, 0) == 0);
	CHECK(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
	by_recv(s, text);
}
static void by_fionread(struct sockets *s, char *text)
{
	int count = -1;

	note(text, ioctl(s->fd, FIONREAD, &count) < 0 ? -1 : count);
}
static void by_send(struct sockets *s, char *text) { note(text, send(s->fd, "data", LENGTH, MSG_NOSIGNAL)); }
static void by_accept(struct sockets *s, char *text)
{
	int fd = accept(s->fd, NULL, NULL);

	note(text, fd < 0 ? -1 : 0);
	if (fd >= 0)
		close(fd);
}
static void by_connect(struct sockets *s, char *text)
{
	struct sockaddr_in address = s->address;

	note(text, connect(s->fd, SA(address), sizeof address));
}
static void by_another_family(struct sockets *s, char *text)
{
	struct sockaddr_in address = s->address;

	address.sin_family = 9090;
	note(text, connect(s->fd, SA(address), sizeof address));
}
static void by_bind(struct sockets *s, char *text)
{
	struct sockaddr_in address = loopback(0);

	note(text, bind(s->fd, SA(address), sizeof address));
}
static void by_listen(struct sockets *s, char *text) { note(text, listen(s->fd, 2)); }
static void by_getsockname(struct sockets *s, char *text)
{
	struct sockaddr_in address;
	socklen_t length = sizeof address;

	note(text, getsockname(s->fd, SA(address), &length));
	strcat(text, address.sin_port ? "port " : "none ");
}
static void by_getpeername(struct sockets *s, char *text)
{
	struct sockaddr_in address;
	socklen_t length = sizeof address;

	note(text, getpeername(s->fd, SA(address), &length));
}
static void by_so_error(struct sockets *s, char *text)
{
	int error = 0;
	socklen_t length = sizeof error;

	for (int i = 0; i < 2; i++) {
		CHECK(getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0);
		errno = error;
		note(text, error ? -1 : 0);
	}
	by_poll(s, text);
}
static void by_shutdown(struct sockets *s, int how, char *text)
{
	note(text, shutdown(s->fd, how));
	by_poll(s, text);
	by_recv(s, text);
}
static void by_shut_reading(struct sockets *s, char *text) { by_shutdown(s, SHUT_RD, text); }
static void by_shut_writing(struct sockets *s, char *text) { by_shutdown(s, SHUT_WR, text); }
static void by_shut_both(struct sockets *s, char *text) { by_shutdown(s, SHUT_RDWR, text); }

struct state {
	const char *name;
	void (*make)(struct sockets *);
};
#define STATE(name) { #name, name }

struct call {
	const char *name;
	void (*run)(struct sockets *, char *);
};
#define CALL(name) { #name, name }

static void walk_all(const struct state *states, unsigned states_count, const struct call *calls, unsigned calls_count,
		     int (*check)(const struct state *, const struct call *))
{
	int good = 1;

	for (unsigned i = 0; i < states_count; i++)
		for (unsigned j = 0; j < calls_count; j++)
			good &= check(&states[i], &calls[j]);
	CHECK(good);
	puts("done");
}
/* Checks all `calls` in all `states`. */
#define WALK(check) walk_all(states, sizeof states / sizeof *states, calls, sizeof calls / sizeof *calls, check)
