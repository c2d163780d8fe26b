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

int main(void)
{
	waits_for_the_outcome();
	waits_for_a_silent_peer();
	an_address_fails_and_returns();
	puts("done");
	return 0;
}
