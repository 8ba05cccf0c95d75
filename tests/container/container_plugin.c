/* A SPANK plugin for the tests that puts a step's tasks into a container the way pyxis does: the mount
 * namespace is entered in task_init_privileged, so that task_init, of whatever plugin, sees the image's files,
 * and the image's environment wins over the job's. Arguments: root=DIR, and mount=PATH (repeated) for what
 * is mounted into it at the same path. Steps without RT_CONTAINER in their environment are left alone. */
#define _GNU_SOURCE
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

SPANK_PLUGIN(test_container, 1)

static int wanted(spank_t handle) {
    char value[16];
    return spank_remote(handle) == 1 &&
           spank_getenv(handle, "RT_CONTAINER", value, sizeof value) == ESPANK_SUCCESS;
}

static const char* root_of(int count, char** arguments) {
    for (int i = 0; i < count; ++i)
        if (strncmp(arguments[i], "root=", 5) == 0) return arguments[i] + 5;
    return NULL;
}

int slurm_spank_user_init(spank_t handle, int count, char** arguments) {
    const char* root = root_of(count, arguments);
    char path[4096], line[1024];
    if (!wanted(handle) || root == NULL) return 0;
    snprintf(path, sizeof path, "%s/etc/environment", root);
    FILE* file = fopen(path, "r");
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char* value = strchr(line, '=');
        if (value == NULL) continue;
        *value++ = '\0';
        spank_setenv(handle, line, value, 1);
    }
    fclose(file);
    return 0;
}

static int bind_into(const char* root, const char* path) {
    char target[4096];
    struct stat status;
    snprintf(target, sizeof target, "%s%s", root, path);
    if (stat(path, &status) != 0) return -1;
    for (char* slash = strchr(target + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(target, 0755);
        *slash = '/';
    }
    if (S_ISDIR(status.st_mode)) mkdir(target, 0755);
    else close(open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    return mount(path, target, NULL, MS_BIND | MS_REC, NULL);
}

int slurm_spank_task_init_privileged(spank_t handle, int count, char** arguments) {
    const char* root = root_of(count, arguments);
    if (!wanted(handle) || root == NULL) return 0;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
    for (int i = 0; i < count; ++i)
        if (strncmp(arguments[i], "mount=", 6) == 0 && bind_into(root, arguments[i] + 6) != 0) {
            slurm_error("test container: %s cannot be mounted", arguments[i] + 6);
            return -1;
        }
    if (chroot(root) != 0 || chdir("/") != 0) return -1;
    return 0;
}
