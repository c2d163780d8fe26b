/* Messages with a priority, and counts of those that were given up (RFC 7496, 3.2, 4.1 to 4.4). */
#include "common.h"

enum { LENGTH = 10000, STREAM = 3 };

/* Sends a message of this priority. Returns whether there was room. */
static int sent(int fd, uint32_t priority, int first)
{
	static char bytes[LENGTH];
	struct sctp_sendv_spa info = {
		.sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID,
		.sendv_sndinfo = { .snd_sid = STREAM },
		.sendv_prinfo = { .pr_policy = SCTP_PR_SCTP_PRIO, .pr_value = priority },
	};
	struct iovec vector = { bytes, LENGTH };
	int done;

	bytes[0] = first;
	done = sctp_sendv(fd, &vector, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SPA, MSG_DONTWAIT);
	CHECK(done == LENGTH || (done == -1 && errno == EAGAIN));
	return done == LENGTH;
}

static uint64_t given_up(int fd, int option, int stream, int policy)
{
	struct sctp_prstatus status = { .sprstat_sid = stream, .sprstat_policy = policy };
	socklen_t length = sizeof status;

	CHECK(getsockopt(fd, SOL_SCTP, option, &status, &length) == 0 && length == sizeof status);
	CHECK(status.sprstat_abandoned_sent == 0);
	return status.sprstat_abandoned_unsent;
}

int main(void)
{
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	struct sctp_default_prinfo by_default = { .pr_policy = SCTP_PR_SCTP_PRIO, .pr_value = 4 };
	struct sctp_prstatus wrong = { .sprstat_policy = 0 };
	int listening = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	int buffer = 1 << 15, accepted, count = 0, got = 0, seen = 0, all = SCTP_PR_SCTP_ALL;
	static char bytes[LENGTH];
	uint64_t gone;

	CHECK(setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) == 0);
	CHECK(setsockopt(client, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer) == 0);
	CHECK(setsockopt(client, SOL_SCTP, SCTP_DEFAULT_PRINFO, &by_default, sizeof by_default) == 0);
	CHECK(bind(listening, SA(address), sizeof address) == 0 && listen(listening, 1) == 0);
	CHECK(getsockname(listening, SA(address), &length) == 0);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	accepted = accept(listening, NULL, NULL);
	CHECK(accepted >= 0);
	/* Until the buffers of both ends are full for good. */
	for (int idle = 0; idle < 4;) {
		if (sent(client, 9, 9)) {
			count++;
			idle = 0;
		} else {
			usleep(100000);
			idle++;
		}
	}
	CHECK(given_up(client, SCTP_PR_ASSOC_STATUS, 0, all) == 0);
	/* None is lower than the lowest. One of the default priority, and one of a higher one. */
	CHECK(!sent(client, 9, 9));
	CHECK(send(client, bytes, LENGTH, MSG_DONTWAIT) == LENGTH);
	CHECK(sent(client, 0, 7));
	count += 2;
	gone = given_up(client, SCTP_PR_STREAM_STATUS, STREAM, SCTP_PR_SCTP_PRIO);
	CHECK(gone >= 1);
	CHECK(given_up(client, SCTP_PR_STREAM_STATUS, STREAM, all) == gone);
	CHECK(given_up(client, SCTP_PR_ASSOC_STATUS, 0, SCTP_PR_SCTP_PRIO) == gone);
	CHECK(given_up(client, SCTP_PR_STREAM_STATUS, 0, all) == 0);
	CHECK(given_up(client, SCTP_PR_ASSOC_STATUS, 0, SCTP_PR_SCTP_TTL) == 0);
	length = sizeof wrong;
	FAILS(getsockopt(client, SOL_SCTP, SCTP_PR_ASSOC_STATUS, &wrong, &length), EINVAL);
	wrong = (struct sctp_prstatus){ .sprstat_policy = all, .sprstat_sid = 60000 };
	FAILS(getsockopt(client, SOL_SCTP, SCTP_PR_STREAM_STATUS, &wrong, &length), EINVAL);
	/* All others arrive. */
	while (got < (count - (int)gone) * LENGTH) {
		int part = recv(accepted, bytes, sizeof bytes, 0);
		CHECK(part > 0);
		seen |= got % LENGTH == 0 && bytes[0] == 7;
		got += part;
	}
	CHECK(got == (count - (int)gone) * LENGTH && seen);
	close(client);
	close(accepted);
	close(listening);
	puts("done");
	return 0;
}
