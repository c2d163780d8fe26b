/*
 * The kernel's sockets against another implementation: sends or receives messages whose every byte is known.
 * pattern_peer send|receive ADDRESS PORT COUNT LENGTH STREAMS
 */
#include "common.h"
#include "pattern.h"

int main(int count_of_words, char **words)
{
	CHECK(count_of_words == 7);
	int sends = strcmp(words[1], "send") == 0, one = 1;
	long count = atol(words[4]), length = atol(words[5]), streams = atol(words[6]);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(words[3])) };
	CHECK(inet_pton(AF_INET, words[2], &address.sin_addr) == 1);
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	struct sctp_initmsg init = { .sinit_num_ostreams = streams, .sinit_max_instreams = streams };
	struct sctp_event_subscribe events = { .sctp_data_io_event = 1 };
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_INITMSG, &init, sizeof init) == 0);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_NODELAY, &one, sizeof one) == 0);
	CHECK(connect(fd, SA(address), sizeof address) == 0);
	uint8_t *message = malloc(length);
	uint32_t *numbers = calloc(65536, sizeof *numbers);
	pattern_prepare();
	for (long i = 0; sends && i < count; i++) {
		uint16_t stream = i % streams;
		pattern_write(message, length, stream, numbers[stream]++);
		CHECK(sctp_sendmsg(fd, message, length, NULL, 0, htonl(7), 0, stream, 0, 0) == length);
	}
	for (long i = 0; !sends && i < count; i++) {
		struct sctp_sndrcvinfo info = { 0 };
		long got = 0;
		for (int flags = 0; !(flags & MSG_EOR);) {
			flags = 0;
			int part = sctp_recvmsg(fd, message + got, length - got, NULL, NULL, &info, &flags);
			CHECK(part > 0);
			got += part;
		}
		CHECK(got == length);
		CHECK(pattern_number(message, length, info.sinfo_stream, true) == numbers[info.sinfo_stream]++);
	}
	struct sockaddr *peers = NULL;
	int paths = sctp_getpaddrs(fd, 0, &peers);
	CHECK(paths > 0);
	sctp_freepaddrs(peers);
	CHECK(shutdown(fd, SHUT_WR) == 0);
	FAILS(read(fd, message, length), ENOTCONN);
	close(fd);
	printf("%d\n", paths);
	return 0;
}
