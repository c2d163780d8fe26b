/* Programs that are executed with an SCTP socket as their standard input. */
#include "common.h"

#include <spawn.h>

extern char **environ;

/* How a program is executed. */
enum way { BY_FORK, BY_VFORK, WITHOUT_THE_LIBRARY };

/* The environment without the library. */
static char **plain(void)
{
	static char *kept[512];
	int count = 0;
	for (char **each = environ; *each && count < 511; each++)
		if (strncmp(*each, "LD_PRELOAD=", 11) != 0)
			kept[count++] = *each;
	return kept;
}

/* Executes a program with `fd` as its standard input and output. Returns its exit status. */
static int executed(enum way way, int fd, char *const *arguments)
{
	int status = -1;
	pid_t child;
	if (way == BY_FORK) {
		child = fork();
		if (child == 0) {
			dup2(fd, STDIN_FILENO);
			dup2(fd, STDOUT_FILENO);
			execvp(arguments[0], arguments);
			_exit(99);
		}
	} else {
		posix_spawn_file_actions_t actions;
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
		posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
		char **environment = way == WITHOUT_THE_LIBRARY ? plain() : environ;
		CHECK(posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environment) == 0);
		posix_spawn_file_actions_destroy(&actions);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Both ends work. */
static void works(int ends[2])
{
	char bytes[8];
	for (int from = 0; from < 2; from++) {
		CHECK(write(ends[from], "message", 7) == 7);
		await(ends[1 - from], POLLIN);
		CHECK(read(ends[1 - from], bytes, sizeof bytes) == 7 && memcmp(bytes, "message", 7) == 0);
		CHECK(events_of(ends[from], 0) == POLLOUT);
	}
}

/* `cat` calls `read`, and `od` reads a stream of `stdio`. With the library, both fail, and so do programs that they
   execute. */
static void is_refused(enum way way)
{
	char *cat[] = { "cat", NULL }, *od[] = { "od", "-c", "-N1", NULL }, *echo[] = { "echo", "lost", NULL };
	char *through[] = { "sh", "-c", "cat", NULL };
	char *const *programs[] = { cat, od, echo, through };
	for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) {
		int ends[2];
		char bytes[8];
		connected(ends);
		CHECK(write(ends[0], "for me", 6) == 6);
		await(ends[1], POLLIN);
		CHECK(executed(way, ends[1], programs[i]) == 1);
		CHECK(events_of(ends[1], 0) == (POLLIN | POLLOUT));
		CHECK(read(ends[1], bytes, sizeof bytes) == 6 && memcmp(bytes, "for me", 6) == 0);
		CHECK(events_of(ends[0], 100) == POLLOUT);
		works(ends);
		close(ends[0]);
		close(ends[1]);
	}
}

/* A program that does not load the library takes the byte that shows that a message has arrived. The owner is told again. */
static void the_owner_is_told_again(void)
{
	int ends[2];
	char bytes[8];
	char *od[] = { "od", "-N1", NULL };
	connected(ends);
	CHECK(write(ends[0], "for me", 6) == 6);
	await(ends[1], POLLIN);
	CHECK(executed(WITHOUT_THE_LIBRARY, ends[1], od) == 0);
	await(ends[1], POLLIN);
	CHECK(read(ends[1], bytes, sizeof bytes) == 6 && memcmp(bytes, "for me", 6) == 0);
	works(ends);
	close(ends[0]);
	close(ends[1]);
}

/* A program that inherits a socket and does not use it says nothing. */
static void is_not_mentioned_unless_used(void)
{
	int ends[2];
	connected(ends);
	CHECK(system("true") == 0);
	works(ends);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	is_not_mentioned_unless_used();
	fputs("quiet until here\n", stderr);
	is_refused(BY_FORK);
	is_refused(BY_VFORK);
	the_owner_is_told_again();
	puts("done");
	return 0;
}
