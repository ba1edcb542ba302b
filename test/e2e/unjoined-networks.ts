// Separates the pod networks of the lab's members, as those of clusters in different places are: pods reach the nodes
// of other clusters with the address of their own node, and no pods there.
import { runCommand, systemProgram, type Cluster, type ClusterNode } from '#test/support/index.ts'

/** Until the stack is disposed of. */
export async function unjoinPods(clusters: readonly Cluster[], stack: AsyncDisposableStack): Promise<void> {
  const nodes = clusters.flatMap(({ node }) => node ?? [])
  for (const node of nodes) for (const other of nodes) if (other !== node) await separate(node, other, stack)
}

async function separate(node: ClusterNode, other: ClusterNode, stack: AsyncDisposableStack): Promise<void> {
  const run = async (...command: string[]): Promise<unknown> =>
    runCommand(node.enter[0] ?? '', [...node.enter.slice(1), ...command])
  const masquerade = ['POSTROUTING', '-s', node.podCidr, '-d', `${other.address}/32`, '-j', 'MASQUERADE']
  const [ip, iptables] = [systemProgram('ip'), systemProgram('iptables')]
  stack.defer(async () => {
    await run(ip, 'route', 'del', 'blackhole', other.podCidr)
    await run(ip, 'route', 'replace', other.podCidr, 'via', other.address)
  })
  await run(ip, 'route', 'del', other.podCidr)
  await run(ip, 'route', 'add', 'blackhole', other.podCidr)
  stack.defer(() => run(iptables, '-t', 'nat', '-D', ...masquerade).then(() => undefined))
  await run(iptables, '-t', 'nat', '-I', ...masquerade)
}
