// The network of a run: one bridge, the nodes' namespaces on it, and flat pod networks over all clusters of the run.

import { networkInterfaces } from 'node:os'
import { bridgeAddress, clusterAddresses, slotCidr } from './address-plan.ts'
import { runCommand } from './command.ts'
import { type Run } from './run.ts'
import { systemProgram } from './system-packages.ts'

/** Scope of resources that belong to the run as a whole. */
const runScope = '(run)'
const bridges = new WeakMap<Run, Promise<void>>()

export const bridgeName = (run: Run): string => `kcp-${run.id}`
export const namespaceName = (run: Run, cluster: string): string => `kcp-${run.id}-${cluster}`

/** Creates the run's bridge once; resolves with the address at which nodes and pods reach this machine. */
export async function ensureBridge(run: Run): Promise<string> {
  let made = bridges.get(run)
  if (made === undefined) {
    made = makeBridge(run)
    bridges.set(run, made)
  }
  await made
  return bridgeAddress(run.record.slot)
}

/** For machines without bridges: a non-loopback address of this machine (aggregation refuses loopback). */
export function machineAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1'
}

/**
 * Creates the network namespace for the node of cluster number `index`, on the bridge, with routes to and from all
 * networks of the run.
 */
export async function makeNodeNamespace(run: Run, cluster: string, index: number): Promise<string> {
  const name = namespaceName(run, cluster)
  const link = `kcp-${run.id}-${index}`
  const { node, podCidr } = clusterAddresses(run.record.slot, index)
  run.add({ type: 'netns', name, scope: cluster })
  await ip('netns', 'add', name)
  run.add({ type: 'link', name: link, scope: cluster })
  await ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
  await ip('link', 'set', link, 'master', bridgeName(run), 'up')
  await ip('-n', name, 'addr', 'add', `${node}/24`, 'dev', 'eth0')
  await ip('-n', name, 'link', 'set', 'eth0', 'up')
  await ip('-n', name, 'link', 'set', 'lo', 'up')
  await ip('-n', name, 'route', 'add', 'default', 'via', bridgeAddress(run.record.slot))
  // Pods of other clusters are reached through their nodes. Routes to nodes that do not exist yet do no harm.
  for (let other = 0; other < 16; other++) {
    const peer = clusterAddresses(run.record.slot, other)
    if (other !== index) await ip('-n', name, 'route', 'add', peer.podCidr, 'via', peer.node)
  }
  const forward = ['--net=' + namespacePath(name), systemProgram('sh'), '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward']
  await runCommand(systemProgram('nsenter'), forward)
  run.add({ type: 'route', destination: podCidr, via: node, scope: cluster })
  await ip('route', 'replace', podCidr, 'via', node)
  return name
}

export const namespacePath = (name: string): string => `/run/netns/${name}`

async function makeBridge(run: Run): Promise<void> {
  const name = bridgeName(run)
  run.add({ type: 'link', name, scope: runScope })
  await ip('link', 'add', name, 'type', 'bridge')
  await ip('addr', 'add', `${bridgeAddress(run.record.slot)}/24`, 'dev', name)
  await ip('link', 'set', name, 'up')
  // A container engine on this machine may drop forwarded packets, which includes frames on bridges.
  const { stdout } = await runCommand(systemProgram('iptables'), ['-S', 'FORWARD'], { expectCode: 'any' })
  if (!stdout.includes('-P FORWARD DROP')) return
  for (const direction of ['-s', '-d']) {
    const rule = [direction, slotCidr(run.record.slot), '-j', 'ACCEPT']
    run.add({ type: 'iptables', chain: 'FORWARD', rule, scope: runScope })
    await runCommand(systemProgram('iptables'), ['-I', 'FORWARD', ...rule])
  }
}

async function ip(...args: string[]): Promise<void> {
  await runCommand(systemProgram('ip'), args, { timeoutMs: 20_000 })
}
