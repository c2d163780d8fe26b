/* Sockets that share an SCTP port, or must not (RFC 6458, 8.1.27; RFC 3493, 5.3). */
#include "common.h"

static struct sockaddr_in6 at6(const char *text, int port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	CHECK(inet_pton(AF_INET6, text, &address.sin6_addr) == 1);
	return address;
}

static struct sockaddr_in at4(const char *text, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	CHECK(inet_pton(AF_INET, text, &address.sin_addr) == 1);
	return address;
}

/* A socket with an option of SOL_SOCKET, or without if it is 0. */
static int with(int family, int type, int option)
{
	int fd = socket(family, type, IPPROTO_SCTP), on = 1;

	CHECK(fd >= 0);
	if (option != 0)
		CHECK(setsockopt(fd, SOL_SOCKET, option, &on, sizeof on) == 0);
	return fd;
}

static int only6(int type)
{
	int fd = with(AF_INET6, type, SO_REUSEADDR), on = 1;

	CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0);
	return fd;
}

/* The listening socket at which a connection to `address` arrives. */
static int reached(const struct sockaddr *address, socklen_t length, const int fds[2])
{
	struct pollfd polled[2] = { { fds[0], POLLIN, 0 }, { fds[1], POLLIN, 0 } };
	int fd = with(address->sa_family, SOCK_STREAM, 0), which, accepted;

	CHECK(connect(fd, address, length) == 0);
	CHECK(poll(polled, 2, 20000) == 1);
	which = polled[1].revents != 0;
	accepted = accept(fds[which], NULL, NULL);
	CHECK(accepted >= 0);
	CHECK(close(fd) == 0 && close(accepted) == 0);
	return which;
}

/* As ncat does: a socket for each family, and neither has an address. */
static void families(int port)
{
	struct sockaddr_in any4 = at4("0.0.0.0", port), to4 = loopback(port);
	struct sockaddr_in6 any6 = at6("::", port), to6 = at6("::1", port);
	int fds[2] = { only6(SOCK_STREAM), with(AF_INET, SOCK_STREAM, SO_REUSEADDR) }, on = 0, other;

	CHECK(bind(fds[0], SA(any6), sizeof any6) == 0 && listen(fds[0], 8) == 0);
	CHECK(bind(fds[1], SA(any4), sizeof any4) == 0 && listen(fds[1], 8) == 0);
	FAILS(setsockopt(fds[0], IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), EINVAL);
	CHECK(reached(SA(to6), sizeof to6, fds) == 0);
	CHECK(reached(SA(to4), sizeof to4, fds) == 1);
	/* A socket for both families meets both. */
	other = with(AF_INET6, SOCK_STREAM, SO_REUSEADDR);
	FAILS(bind(other, SA(any6), sizeof any6), EADDRINUSE);
	CHECK(close(other) == 0 && close(fds[0]) == 0 && close(fds[1]) == 0);
}

static void addresses(int port)
{
	struct sockaddr_in one = at4("127.0.0.1", port), two = at4("127.0.0.2", port);
	struct sockaddr_in any = at4("0.0.0.0", port);
	int fds[2] = { with(AF_INET, SOCK_STREAM, 0), with(AF_INET, SOCK_STREAM, 0) };
	int other = with(AF_INET, SOCK_STREAM, 0);

	CHECK(bind(fds[0], SA(one), sizeof one) == 0 && listen(fds[0], 8) == 0);
	FAILS(bind(fds[1], SA(one), sizeof one), EADDRINUSE);
	FAILS(bind(fds[1], SA(any), sizeof any), EADDRINUSE);
	CHECK(bind(fds[1], SA(two), sizeof two) == 0 && listen(fds[1], 8) == 0);
	/* It has this address (Linux: sctp_do_bind). */
	FAILS(sctp_bindx(fds[1], SA(two), 1, SCTP_BINDX_ADD_ADDR), EINVAL);
	CHECK(reached(SA(one), sizeof one, fds) == 0);
	CHECK(reached(SA(two), sizeof two, fds) == 1);
	CHECK(close(fds[0]) == 0);
	/* The port is free once the last association has ended. */
	for (int tries = 0; bind(other, SA(one), sizeof one) != 0; tries++) {
		CHECK(errno == EADDRINUSE && tries < 4000);
		usleep(5000);
	}
	CHECK(close(other) == 0 && close(fds[1]) == 0);
}

/* SO_REUSEADDR and SCTP_REUSE_PORT: both sockets have the address, and one of them listens. */
static void in_turn(int port, int option)
{
	struct sockaddr_in one = at4("127.0.0.1", port);
	int fds[2] = { with(AF_INET, SOCK_STREAM, option), with(AF_INET, SOCK_STREAM, option) };
	int many = with(AF_INET, SOCK_SEQPACKET, 0), on = 1;

	if (option == 0) {
		CHECK(setsockopt(fds[0], SOL_SCTP, SCTP_REUSE_PORT, &on, sizeof on) == 0);
		CHECK(setsockopt(fds[1], SOL_SCTP, SCTP_REUSE_PORT, &on, sizeof on) == 0);
		FAILS(setsockopt(many, SOL_SCTP, SCTP_REUSE_PORT, &on, sizeof on), EOPNOTSUPP);
	}
	CHECK(bind(fds[0], SA(one), sizeof one) == 0);
	FAILS(setsockopt(fds[0], SOL_SCTP, SCTP_REUSE_PORT, &on, sizeof on), EFAULT);
	CHECK(bind(fds[1], SA(one), sizeof one) == 0 && listen(fds[1], 8) == 0);
	FAILS(listen(fds[0], 8), EADDRINUSE);
	CHECK(close(fds[1]) == 0 && listen(fds[0], 8) == 0);
	CHECK(close(fds[0]) == 0 && close(many) == 0);
}

/* SO_REUSEPORT: both sockets listen, and each peer reaches one of them. */
static void shared(int port)
{
	struct sockaddr_in one = at4("127.0.0.1", port), two = at4("127.0.0.2", port);
	int fds[2] = { with(AF_INET, SOCK_STREAM, SO_REUSEPORT), with(AF_INET, SOCK_STREAM, SO_REUSEPORT) };
	int third = with(AF_INET, SOCK_STREAM, SO_REUSEPORT), counts[2] = { 0, 0 };

	CHECK(bind(fds[0], SA(one), sizeof one) == 0 && listen(fds[0], 8) == 0);
	CHECK(bind(fds[1], SA(one), sizeof one) == 0 && listen(fds[1], 8) == 0);
	CHECK(bind(third, SA(one), sizeof one) == 0);
	CHECK(sctp_bindx(third, SA(two), 1, SCTP_BINDX_ADD_ADDR) == 0);
	FAILS(listen(third, 8), EEXIST);
	for (int peer = 0; peer < 200 && (counts[0] == 0 || counts[1] == 0); peer++)
		counts[reached(SA(one), sizeof one, fds)]++;
	CHECK(counts[0] > 0 && counts[1] > 0);
	CHECK(close(third) == 0 && close(fds[0]) == 0);
	/* The other one takes all peers. */
	fds[0] = with(AF_INET, SOCK_STREAM, 0);
	CHECK(reached(SA(one), sizeof one, fds) == 1);
	CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
}

int main(void)
{
	families(5001);
	addresses(5002);
	in_turn(5003, SO_REUSEADDR);
	in_turn(5004, 0);
	shared(5005);
	puts("done");
	return 0;
}
