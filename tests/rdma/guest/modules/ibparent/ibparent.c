// SPDX-License-Identifier: GPL-2.0
/*
 * ibparent: test only. Moves the soft RDMA device of each named network interface below that
 * interface's PCI function, so that /sys/class/infiniband/X/device exists as on hardware:
 *   insmod ibparent.ko netdevs=eth0,eth1
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>

static char *netdevs[32];
static int n_netdevs;
module_param_array(netdevs, charp, &n_netdevs, 0444);

static int __init ibparent_init(void)
{
	int i;

	for (i = 0; i < n_netdevs; i++) {
		struct net_device *net = dev_get_by_name(&init_net, netdevs[i]);
		struct ib_device *ib;
		struct device *parent;

		if (!net) {
			pr_warn("ibparent: no interface %s\n", netdevs[i]);
			continue;
		}
		ib = ib_device_get_by_netdev(net, RDMA_DRIVER_UNKNOWN);
		parent = net->dev.parent;
		if (parent && parent->bus && !strcmp(parent->bus->name, "virtio"))
			parent = parent->parent;	/* virtioN -> its PCI function */
		if (!ib || !parent)
			pr_warn("ibparent: %s has no RDMA device or no parent\n", netdevs[i]);
		else if (device_move(&ib->dev, parent, DPM_ORDER_NONE))
			pr_warn("ibparent: cannot move %s\n", dev_name(&ib->dev));
		if (ib)
			ib_device_put(ib);
		dev_put(net);
	}
	return 0;
}

static void __exit ibparent_exit(void)
{
}

module_init(ibparent_init);
module_exit(ibparent_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("test only: PCI parents for soft RDMA devices");
