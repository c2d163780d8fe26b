/* Calls that open associations of one-to-many sockets (RFC 6458, 3.1.6 and 9.9), and addresses that fail and return (6.1.2). */
#include "relay.h"

static int one_to_many(int type)
{
	int fd = socket(AF_INET, SOCK_SEQPACKET | type, IPPROTO_SCTP);

	CHECK(fd >= 0);
	return fd;
}

static int associations(int fd)
{
	int count = -1;
	socklen_t length = sizeof count;

	CHECK(getsockopt(fd, SOL_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &length) == 0);
	return count;
}

static void established(int fd, sctp_assoc_t id)
{
	struct sctp_status status = { .sstat_assoc_id = id };
	socklen_t length = sizeof status;

	CHECK(getsockopt(fd, SOL_SCTP, SCTP_STATUS, &status, &length) == 0);
	CHECK(status.sstat_state == SCTP_ESTABLISHED);
}

static void waits_for_the_outcome(void)
{
	struct sockaddr_in address, closed = loopback(1);
	int server = listener(SOCK_SEQPACKET, &address), client = one_to_many(0);
	sctp_assoc_t id = 0;

	for (int i = 0; i < 3; i++) {
		FAILS(connect(client, SA(closed), sizeof closed), ECONNREFUSED);
		FAILS(sctp_connectx(client, SA(closed), 1, &id), ECONNREFUSED);
		CHECK(associations(client) == 0);
	}
	CHECK(sctp_connectx(client, SA(address), 1, &id) == 0);
	established(client, id);
	FAILS(connect(client, SA(address), sizeof address), EISCONN);
	CHECK(close(client) == 0);

	client = one_to_many(0);
	CHECK(connect(client, SA(address), sizeof address) == 0 && associations(client) == 1);
	CHECK(close(client) == 0);

	client = one_to_many(SOCK_NONBLOCK);
	FAILS(connect(client, SA(closed), sizeof closed), EINPROGRESS);
	FAILS(sctp_connectx(client, SA(address), 1, &id), EINPROGRESS);
	CHECK(close(client) == 0);
	CHECK(close(server) == 0);
}

static void nothing(int signal)
{
	(void)signal;
}

static struct {
	int fd, outcome;
	struct sockaddr_in to;
	_Atomic int ended;
} call;

static void *connects(void *unused)
{
	(void)unused;
	call.outcome = connect(call.fd, SA(call.to), sizeof call.to) ? errno : 0;
	call.ended = 1;
	return NULL;
}

/* A peer that does not answer. */
static void waits_for_a_silent_peer(void)
{
	struct timeval limit = { .tv_usec = 300000 };
	struct sockaddr_in silent, address;
	int unreached = listener(SOCK_SEQPACKET, &silent), server = listener(SOCK_SEQPACKET, &address), client = one_to_many(0);
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval timer = { .it_value.tv_usec = 200000 };
	pthread_t thread;
	char got[8];

	stopped = 1;
	through_relay(client);
	CHECK(setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
	FAILS(connect(client, SA(silent), sizeof silent), EINPROGRESS);
	CHECK(close(client) == 0);

	client = one_to_many(0);
	through_relay(client);
	CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
	FAILS(connect(client, SA(silent), sizeof silent), EINTR);
	CHECK(close(client) == 0);

	/* Other associations of the socket are used meanwhile. */
	client = one_to_many(0);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	through_relay(client);
	call.fd = client;
	call.to = silent;
	CHECK(pthread_create(&thread, NULL, connects, NULL) == 0);
	while (associations(client) < 2)
		usleep(1000);
	CHECK(events_of(client, 0) == POLLOUT);
	CHECK(sctp_sendmsg(client, "words", 5, SA(address), sizeof address, 0, 0, 0, 0, 0) == 5);
	CHECK(recv(server, got, sizeof got, 0) == 5);
	CHECK(!call.ended);
	stopped = 0;
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(call.outcome == 0 && associations(client) == 2);
	CHECK(close(client) == 0);

	/* Its end ends the call. */
	stopped = 1;
	client = one_to_many(0);
	through_relay(client);
	call.fd = client;
	call.ended = 0;
	CHECK(pthread_create(&thread, NULL, connects, NULL) == 0);
	while (associations(client) < 1)
		usleep(1000);
	CHECK(close(client) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(call.outcome == EBADF);
	stopped = 0;
	CHECK(close(unreached) == 0 && close(server) == 0);
}

/* The next change of an address. */
static int change(int fd)
{
	union sctp_notification got;

	await(fd, POLLIN);
	CHECK(recv(fd, &got, sizeof got, 0) > 0);
	CHECK(got.sn_header.sn_type == SCTP_PEER_ADDR_CHANGE);
	return got.sn_paddr_change.spc_state;
}

/* The address of the handshake is confirmed from the start (RFC 9260, 5.4): it becomes available again. */
static void an_address_fails_and_returns(void)
{
	struct sockaddr_in address;
	int server = listener(SOCK_STREAM, &address), ends[2] = { socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), -1 };
	struct sctp_event event = { .se_type = SCTP_PEER_ADDR_CHANGE, .se_on = 1 };
	struct sctp_paddrparams path = { .spp_flags = SPP_HB_ENABLE, .spp_hbinterval = 100, .spp_pathmaxrxt = 1 };
	struct sctp_assocparams association = { .sasoc_asocmaxrxt = 100 };
	struct sctp_rtoinfo rto = { .srto_initial = 200, .srto_min = 100, .srto_max = 400 };

	CHECK(ends[0] >= 0);
	through_relay(ends[0]);
	CHECK(connect(ends[0], SA(address), sizeof address) == 0);
	ends[1] = accept(server, NULL, NULL);
	CHECK(ends[1] >= 0);
	for (int i = 0; i < 2; i++) {
		CHECK(setsockopt(ends[i], SOL_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
		CHECK(setsockopt(ends[i], SOL_SCTP, SCTP_ASSOCINFO, &association, sizeof association) == 0);
		CHECK(setsockopt(ends[i], SOL_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == 0);
		CHECK(setsockopt(ends[i], SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) == 0);
	}
	for (int round = 0; round < 2; round++) {
		stopped = 1;
		for (int i = 0; i < 2; i++)
			CHECK(change(ends[i]) == SCTP_ADDR_UNREACHABLE);
		stopped = 0;
		for (int i = 0; i < 2; i++)
			CHECK(change(ends[i]) == SCTP_ADDR_AVAILABLE);
	}
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && close(server) == 0);
}

/* A port whose UDP port is open, and which refuses. */
static struct sockaddr_in refusing(void)
{
	struct sockaddr_in address;

	CHECK(close(listener(SOCK_STREAM, &address)) == 0);
	return address;
}

static void connects_and_is_used(int fd, int copy, int epoll, struct sockaddr_in to, int server)
{
	struct epoll_event event;
	char got[8];
	int far;

	CHECK(connect(fd, SA(to), sizeof to) == 0 || errno == EINPROGRESS);
	await(copy, POLLOUT);
	CHECK(events_of(fd, 0) == POLLOUT);
	CHECK(epoll < 0 || (epoll_wait(epoll, &event, 1, 0) == 1 && event.events == EPOLLOUT));
	await(server, POLLIN);
	far = accept(server, NULL, NULL);
	CHECK(far >= 0 && write(copy, "again", 5) == 5 && read(far, got, sizeof got) == 5);
	CHECK(write(far, "back", 4) == 4);
	await(fd, POLLIN);
	CHECK(read(fd, got, sizeof got) == 4 && close(far) == 0 && close(fd) == 0 && close(copy) == 0);
}

/* A socket that was refused connects again with the same descriptors and their flags. */
static void a_refused_socket_connects_again(int flags)
{
	struct sockaddr_in to = refusing(), address;
	int server = listener(SOCK_STREAM, &address), epoll = epoll_create1(0), error = 0;
	int fd = socket(AF_INET, SOCK_STREAM | flags, IPPROTO_SCTP), copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
	struct timeval limit = { .tv_sec = 7 }, shown;
	struct sockaddr_in own = loopback(0);
	socklen_t length = sizeof error, size = sizeof shown;

	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
	CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
	if (flags == 0) {
		/* The call returns the error, and the socket is as before. */
		FAILS(connect(fd, SA(to), sizeof to), ECONNREFUSED);
		CHECK(events_of(fd, 0) == 0);
		FAILS(connect(fd, SA(to), sizeof to), ECONNREFUSED);
	} else {
		FAILS(connect(fd, SA(to), sizeof to), EINPROGRESS);
		await(fd, POLLIN);
		CHECK(events_of(copy, 0) == (POLLIN | POLLOUT | POLLERR | POLLHUP));
		CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNREFUSED);
		CHECK(events_of(copy, 0) == (POLLIN | POLLOUT | POLLHUP));
	}
	connects_and_is_used(fd, copy, flags == 0 ? epoll : -1, address, server);
	CHECK(fcntl(fd, F_GETFD) == -1);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	CHECK(bind(fd, SA(own), sizeof own) == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
	FAILS(connect(fd, SA(to), sizeof to), EINPROGRESS);
	await(fd, POLLIN);
	/* It may also listen, which clears the error. */
	CHECK(listen(copy, 1) == 0 && events_of(fd, 0) == 0);
	CHECK(fcntl(fd, F_GETFD) == 0 && fcntl(copy, F_GETFD) == FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(getsockopt(copy, SOL_SOCKET, SO_RCVTIMEO, &shown, &size) == 0 && shown.tv_sec == 7);
	CHECK(close(fd) == 0 && close(copy) == 0 && close(server) == 0 && close(epoll) == 0);
}

int main(void)
{
	waits_for_the_outcome();
	a_refused_socket_connects_again(0);
	a_refused_socket_connects_again(SOCK_NONBLOCK);
	waits_for_a_silent_peer();
	an_address_fails_and_returns();
	puts("done");
	return 0;
}
