/* A short message is accepted although a long one of another stream fills the send buffer. */
#include "common.h"

#define LONG (4 << 20)
#define SHORT 100

static char bytes[LONG];

static int sent(int fd, int stream, int length)
{
	int done = sctp_sendmsg(fd, bytes, length, NULL, 0, 0, 0, stream, 0, 0);

	CHECK(done == length || (done == -1 && errno == EAGAIN));
	return done == length;
}

int main(void)
{
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	int listening = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	int buffer = 1 << 15, accepted, got = 0;

	CHECK(setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) == 0);
	CHECK(setsockopt(client, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer) == 0);
	CHECK(bind(listening, SA(address), sizeof address) == 0 && listen(listening, 1) == 0);
	CHECK(getsockname(listening, SA(address), &length) == 0);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	accepted = accept(listening, NULL, NULL);
	CHECK(accepted >= 0 && fcntl(client, F_SETFL, O_NONBLOCK) == 0);

	/* Nobody reads, so the buffer stays full. */
	CHECK(sent(client, 0, LONG));
	CHECK(!sent(client, 0, SHORT) && !sent(client, 1, LONG));
	CHECK(!(events_of(client, 0) & POLLOUT));
	for (int stream = 1; stream <= 3; stream++)
		CHECK(sent(client, stream, SHORT));
	CHECK(!sent(client, 0, SHORT));
	while (got < LONG + 3 * SHORT) {
		int part = recv(accepted, bytes, sizeof bytes, 0);

		CHECK(part > 0);
		got += part;
	}
	CHECK(got == LONG + 3 * SHORT);
	await(client, POLLOUT);
	CHECK(sent(client, 0, SHORT));
	CHECK(recv(accepted, bytes, sizeof bytes, 0) == SHORT);
	CHECK(close(client) == 0 && close(accepted) == 0 && close(listening) == 0);
	puts("done");
	return 0;
}
