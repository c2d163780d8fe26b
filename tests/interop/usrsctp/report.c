#include "report.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <usrsctp.h>

#define MAX_EVENTS 200

static struct {
	double at;
	char text[100];
} events[MAX_EVENTS];
static int event_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

double now_s(void)
{
	static double start;
	struct timespec t;
	double now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec + t.tv_nsec * 1e-9;
	if (start == 0)
		start = now;
	return now - start;
}

void event(const char *format, ...)
{
	va_list arguments;

	pthread_mutex_lock(&lock);
	if (event_count < MAX_EVENTS) {
		events[event_count].at = now_s();
		va_start(arguments, format);
		vsnprintf(events[event_count].text, sizeof(events[0].text), format, arguments);
		va_end(arguments);
		event_count++;
	}
	pthread_mutex_unlock(&lock);
}

static double seconds(struct timeval t)
{
	return t.tv_sec + t.tv_usec * 1e-6;
}

void print_report(const struct report *r)
{
	struct rusage usage;
	struct sctpstat stat;
	double measured = r->last_at > r->warm_at ? r->last_at - r->warm_at : 0;

	getrusage(RUSAGE_SELF, &usage);
	usrsctp_get_stat(&stat);
	printf("{\"ended\":\"%s\",\"sent\":{\"messages\":%lu,\"bytes\":%lu},", r->ended, r->sent_messages,
	       r->sent_bytes);
	printf("\"received\":{\"messages\":%lu,\"bytes\":%lu,\"wrong\":%lu,\"seconds\":%.6f,", r->received_messages,
	       r->received_bytes, r->wrong, r->last_at - r->first_at);
	printf("\"measured_bytes\":%lu,\"measured_seconds\":%.6f,\"goodput_bps\":%.0f},", r->measured_bytes, measured,
	       measured > 0 ? 8 * r->measured_bytes / measured : 0);
	printf("\"restarts\":%u,\"cpu_s\":%.6f,", r->restarts,
	       seconds(usage.ru_utime) + seconds(usage.ru_stime));
	printf("\"stack\":{\"checksum_errors\":%u,\"out_of_the_blue\":%u,\"aborted\":%u,\"restarted\":%u,"
	       "\"collisions\":%u,\"retransmitted_chunks\":%u,\"fast_retransmits\":%u},",
	       stat.sctps_checksumerrors, stat.sctps_outoftheblue, stat.sctps_aborted, stat.sctps_restartestab,
	       stat.sctps_collisionestab, stat.sctps_sendretransdata, stat.sctps_sendfastretrans);
	printf("\"events\":[");
	for (int i = 0; i < event_count; i++)
		printf("%s{\"at\":%.6f,\"event\":\"%s\"}", i ? "," : "", events[i].at, events[i].text);
	printf("]}\n");
	fflush(stdout);
}
