/* What the attempts in C share; see attempt.py, which says the same in Python. */
#ifndef ESCAPE_ATTEMPT_H
#define ESCAPE_ATTEMPT_H
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *verdict, const char *format, va_list arguments)
{
    printf("%s: ", verdict);
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    _exit(0);
}

/* The boundary was crossed. */
static inline void escaped(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("ESCAPED", format, arguments);
}

/* It got nowhere. */
static inline void blocked(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("BLOCKED", format, arguments);
}

/* A call went through: an escape unless the kernel that took it is the sandbox's own. */
static inline void reached(const char *format, ...)
{
    struct utsname name;
    const char *host = getenv("ESCAPE_HOST_RELEASE");
    va_list arguments;
    va_start(arguments, format);
    uname(&name);
    say(host && strcmp(host, name.release) ? "BLOCKED: stayed inside the sandbox's own kernel" : "ESCAPED", format, arguments);
}

/* Runs the attempt in a child; SIGSYS (a filter that kills) and SIGSEGV (no such gate) count as blocked. */
static inline int run(void (*attempt)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        attempt();
        fprintf(stderr, "the attempt ended without a verdict\n");
        _exit(1);
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV))
        blocked("killed by signal %d", WTERMSIG(status));
    return WIFSIGNALED(status) ? 1 : WEXITSTATUS(status);
}
#endif
