/* The two programs of the tests' workloads, by the name that one is called by; linked statically, so that they need no files.
 *
 * pause      keeps a pod's namespaces: does nothing until it is told to end, and takes away what ended before it
 * vectorAdd  prints what NVIDIA's sample of that name prints where it works, then rests, so that a loop of it costs nothing
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REST_SECONDS = 5 };

static void end(int number)
{
    (void)number;
    _exit(0);
}

static void take_away(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(int count, char **arguments)
{
    const char *name = count > 0 ? strrchr(arguments[0], '/') : NULL;

    if (name && !strcmp(name, "/vectorAdd")) {
        puts("[Vector addition of 50000 elements]\nTest PASSED\nDone");
        fflush(stdout);
        sleep(REST_SECONDS);
        return 0;
    }
    signal(SIGINT, end);
    signal(SIGTERM, end);
    signal(SIGCHLD, take_away);
    for (;;)
        pause();
}
