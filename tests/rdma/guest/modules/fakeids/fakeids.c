// SPDX-License-Identifier: GPL-2.0
/*
 * fakeids: test only. Lets chosen PCI functions report another vendor, device and class, so that
 * sysfs, lspci and hwloc all take them for GPUs:
 *   insmod fakeids.ko ids=0000:22:00.0=10de:2330:030200,...
 * Every bus that holds such a function gets config-space operations which patch reads of bytes
 * 0x00-0x03 (vendor, device) and 0x09-0x0b (class); then the function is removed and found anew.
 * Links can be made to look narrow: words=ADDRESS=OFFSET:VALUE,... replaces the 16-bit word at a
 * config-space offset in reads. A driver called "nvidia" takes every NVIDIA function and does
 * nothing with it.
 */
#include <linux/module.h>
#include <linux/pci.h>

#define MAX_FUNCTIONS 32

static char *ids[MAX_FUNCTIONS];
static int n_ids;
module_param_array(ids, charp, &n_ids, 0444);

static char *words[MAX_FUNCTIONS];
static int n_words;
module_param_array(words, charp, &n_words, 0444);
MODULE_PARM_DESC(words, "DOMAIN:BUS:DEV.FN=OFFSET:VALUE, hexadecimal: what reads of a 16-bit word give");

struct target {
	unsigned int domain, bus_number, device, function;
	unsigned int vendor, device_id, class;	/* of ids */
	unsigned int offset, value;		/* of words */
	bool word;
	struct pci_bus *bus;
	struct pci_ops *original;
};

static struct target targets[2 * MAX_FUNCTIONS];
static int n_targets;

static struct pci_ops *original_ops(struct pci_bus *bus)
{
	int i;

	for (i = 0; i < n_targets; i++)
		if (targets[i].bus == bus)
			return targets[i].original;
	return NULL;
}

/* The byte that `t` shows at config-space address `at`, or -1 for the real one. */
static int patched_byte(const struct target *t, int at)
{
	if (t->word) {
		if (at == t->offset)
			return t->value & 0xff;
		return at == t->offset + 1 ? t->value >> 8 & 0xff : -1;
	}
	switch (at) {
	case 0x00: return t->vendor & 0xff;
	case 0x01: return t->vendor >> 8 & 0xff;
	case 0x02: return t->device_id & 0xff;
	case 0x03: return t->device_id >> 8 & 0xff;
	case 0x09: return t->class & 0xff;
	case 0x0a: return t->class >> 8 & 0xff;
	case 0x0b: return t->class >> 16 & 0xff;
	default: return -1;
	}
}

static int fake_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct pci_ops *ops = original_ops(bus);
	int i, byte, rc;

	if (!ops) {
		*value = ~0;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	rc = ops->read(bus, devfn, where, size, value);
	if (rc)
		return rc;
	for (i = 0; i < n_targets; i++) {
		const struct target *t = &targets[i];

		if (t->bus != bus || PCI_DEVFN(t->device, t->function) != devfn)
			continue;
		for (byte = 0; byte < size; byte++) {
			int shown = patched_byte(t, where + byte);

			if (shown >= 0)
				*value = (*value & ~(0xffu << (8 * byte))) | (u32)shown << (8 * byte);
		}
	}
	return 0;
}

static int fake_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct pci_ops *ops = original_ops(bus);

	return ops ? ops->write(bus, devfn, where, size, value) : PCIBIOS_DEVICE_NOT_FOUND;
}

static struct pci_ops fake_ops = { .read = fake_read, .write = fake_write };

static const struct pci_device_id gpu_ids[] = { { PCI_DEVICE(0x10de, PCI_ANY_ID) }, { } };

static int gpu_probe(struct pci_dev *dev, const struct pci_device_id *id)
{
	return 0;
}

static struct pci_driver gpu_driver = { .name = "nvidia", .id_table = gpu_ids, .probe = gpu_probe };

static int add_target(const char *text, bool word)
{
	struct target *t = &targets[n_targets];
	int i, fields;

	t->word = word;
	if (word)
		fields = sscanf(text, "%x:%x:%x.%x=%x:%x", &t->domain, &t->bus_number, &t->device,
				&t->function, &t->offset, &t->value) == 6;
	else
		fields = sscanf(text, "%x:%x:%x.%x=%x:%x:%x", &t->domain, &t->bus_number, &t->device,
				&t->function, &t->vendor, &t->device_id, &t->class) == 7;
	if (!fields)
		return -EINVAL;
	t->bus = pci_find_bus(t->domain, t->bus_number);
	if (!t->bus)
		return -ENODEV;
	t->original = t->bus->ops;
	for (i = 0; i < n_targets; i++)
		if (targets[i].bus == t->bus)
			t->original = targets[i].original;
	n_targets++;
	return 0;
}

static int __init fakeids_init(void)
{
	int i, rc;

	for (i = 0; i < n_ids; i++) {
		rc = add_target(ids[i], false);
		if (rc)
			return rc;
	}
	for (i = 0; i < n_words; i++) {
		rc = add_target(words[i], true);
		if (rc)
			return rc;
	}
	for (i = 0; i < n_targets; i++)
		pci_bus_set_ops(targets[i].bus, &fake_ops);
	for (i = 0; i < n_ids; i++) {	/* functions with a patched word keep their driver */
		const struct target *t = &targets[i];
		struct pci_dev *dev = pci_get_domain_bus_and_slot(t->domain, t->bus_number,
								  PCI_DEVFN(t->device, t->function));

		if (dev) {
			pci_stop_and_remove_bus_device_locked(dev);
			pci_dev_put(dev);
		}
		pci_lock_rescan_remove();
		pci_rescan_bus(t->bus);
		pci_unlock_rescan_remove();
	}
	__module_get(THIS_MODULE);	/* the buses keep our operations: never unload */
	return pci_register_driver(&gpu_driver);
}
module_init(fakeids_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("test only: PCI functions with other ids");
