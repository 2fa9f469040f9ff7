/* Lines to words, numbers to UUIDs, variables to files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

int split_words(char *line, char *words[MAX_WORDS])
{
    char *comment = strchr(line, '#'), *rest = NULL;
    int count = 0;
    if (comment)
        *comment = '\0';
    for (char *word = strtok_r(line, " \t\r\n", &rest); word && count < MAX_WORDS; word = strtok_r(NULL, " \t\r\n", &rest))
        words[count++] = word;
    return count;
}

/* What the environment says, or where a container of ours has the driver, and so this library. */
const char *file_named(const char *variable, const char *usual)
{
    const char *said = getenv(variable);
    return said ? said : usual;
}

static unsigned mixed(unsigned number)
{
    number ^= number >> 16;
    number *= 0x7feb352dU;
    number ^= number >> 15;
    number *= 0x846ca68bU;
    return number ^ number >> 16;
}

/* The UUIDs of the recorded cases. */
void make_uuid(char *text, const char *prefix, unsigned seed)
{
    unsigned a = mixed(seed * 4 + 1), b = mixed(seed * 4 + 2), c = mixed(seed * 4 + 3), d = mixed(seed * 4 + 4);
    sprintf(text, "%s-%08x-%04x-%04x-%04x-%04x%08x", prefix, a, b >> 16, (b & 0xfff) | 0x5000, ((c >> 16) & 0x3fff) | 0x8000,
            c & 0xffff, d);
}
