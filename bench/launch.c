/* Runs a command and writes what it cost to a file: CPU time, wall time, peak memory.

   The kernel counts the parent's memory as a new process's peak until it runs its own program, so a
   large parent hides a small child. This one is smaller than anything it measures. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: launch OUTPUT COMMAND...\n");
        return 2;
    }
    double started = now();
    pid_t child = vfork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
        perror("launch");
        return 2;
    }
    double wall = now() - started;
    FILE *output = fopen(argv[1], "w");
    if (!output) {
        perror(argv[1]);
        return 2;
    }
    fprintf(output, "%.9f %.6f %.6f %ld\n", wall, seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss);
    fclose(output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
