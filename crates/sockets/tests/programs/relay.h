/* Relays of UDP, each between one client and the endpoint of this process. They can stop for a while. */
#include "common.h"

enum { RELAYS = 64 };

static struct relay {
	int near, far; /* towards the client, towards the server */
	struct sockaddr_in client, server;
} relays[RELAYS];

static _Atomic int stopped;

static void *forward(void *argument)
{
	struct relay *relay = argument;
	char packet[1 << 16];

	for (;;) {
		struct pollfd polled[2] = { { .fd = relay->near, .events = POLLIN }, { .fd = relay->far, .events = POLLIN } };

		CHECK(poll(polled, 2, -1) > 0);
		for (int i = 0; i < 2; i++) {
			struct sockaddr_in from;
			socklen_t length = sizeof from;
			ssize_t got = polled[i].revents ? recvfrom(polled[i].fd, packet, sizeof packet, 0, SA(from), &length) : -1;

			if (got < 0 || stopped)
				continue;
			if (i == 0)
				relay->client = from;
			sendto(i ? relay->near : relay->far, packet, got, 0, i ? SA(relay->client) : SA(relay->server), sizeof from);
		}
	}
	return NULL;
}

/* Associations that the socket opens from now on go through a relay. */
static inline void through_relay(int fd)
{
	static int count;
	struct relay *relay = &relays[count++];
	struct sockaddr_in address = loopback(0);
	struct sctp_udpencaps udp = { 0 };
	socklen_t length = sizeof address;
	pthread_t thread;

	CHECK(count <= RELAYS);
	relay->near = socket(AF_INET, SOCK_DGRAM, 0);
	relay->far = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(bind(relay->near, SA(address), sizeof address) == 0);
	CHECK(getsockname(relay->near, SA(address), &length) == 0);
	relay->server = loopback(atoi(getenv("ROPEWALK_UDP_PORT")));
	CHECK(pthread_create(&thread, NULL, forward, relay) == 0);
	CHECK(pthread_detach(thread) == 0);
	udp.sue_address.ss_family = AF_INET;
	udp.sue_port = address.sin_port;
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) == 0);
}
