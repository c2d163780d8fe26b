/* A program that sends only when poll() says that the socket is writable. */
#include "common.h"

enum { MESSAGES = 200, LENGTH = 32768 };

static void *receive_all(void *fd)
{
	static char into[LENGTH];
	for (long left = (long)MESSAGES * LENGTH; left > 0;) {
		ssize_t got = read(*(int *)fd, into, sizeof into);
		CHECK(got > 0);
		left -= got;
		usleep(500);
	}
	return NULL;
}

/* The send buffer has room for two messages. A message that takes the last room is no failure that the library sees. */
int main(void)
{
	static char message[LENGTH];
	struct sockaddr_in address;
	int server = listener(SOCK_STREAM, &address), fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), size = LENGTH;
	pthread_t thread;

	CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
	CHECK(connect(fd, SA(address), sizeof address) == 0);
	int far = accept(server, NULL, NULL);
	CHECK(pthread_create(&thread, NULL, receive_all, &far) == 0);
	for (int i = 0; i < MESSAGES; i++) {
		await(fd, POLLOUT);
		CHECK(send(fd, message, LENGTH, MSG_DONTWAIT) == LENGTH);
	}
	CHECK(pthread_join(thread, NULL) == 0);
	close(fd);
	close(far);
	close(server);
	puts("done");
	return 0;
}
