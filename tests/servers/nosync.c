/* A library that lies about syncs: with it preloaded, nothing reaches a disk when a program syncs. Built by
 * tests/cli/crash.rs. */
int fsync(int file)
{
    (void)file;
    return 0;
}

int fdatasync(int file)
{
    (void)file;
    return 0;
}
