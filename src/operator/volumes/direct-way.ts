// The address at which a mover may reach the other one. A member says the address, and could name any.
import { BlockList, isIP } from 'node:net'

/** Address and port of a mover, and the name of its pod; otherwise the reason why the other mover does not try. */
export type DirectWay = { readonly address: string; readonly pod: string } | { readonly whyNot: string }

// A list each: for a BlockList, any IPv4 address is in the range of IPv4-mapped ones.
const [noPods4, noPods6] = [new BlockList(), new BlockList()]
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 3],
] as const)
  noPods4.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 127],
  ['::ffff:0:0', 96],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  noPods6.addSubnet(network, bits, 'ipv6')

/** The way to a port of a pod. The operator gives the pod its name; its member says the status. */
export function directWayTo(pod: string, port: number, status: unknown): DirectWay {
  const { podIP, hostIP } = (status ?? {}) as { readonly podIP?: unknown; readonly hostIP?: unknown }
  if (podIP === undefined) return { whyNot: 'the pod in the old member cluster has no address' }
  const said = `the pod in the old member cluster has address ${JSON.stringify(podIP).slice(0, 100)}`
  // An IPv6 address with a zone is one of a link.
  if (typeof podIP !== 'string' || isIP(podIP) === 0 || podIP.includes('%'))
    return { whyNot: `${said}, which is no IP` }
  if (podIP === hostIP) return { whyNot: `${said}, which is that of its node` }
  const isIPv6 = isIP(podIP) === 6
  if (isIPv6 ? noPods6.check(podIP, 'ipv6') : noPods4.check(podIP, 'ipv4'))
    return { whyNot: `${said}, which no pod can have` }
  return { address: `${isIPv6 ? `[${podIP}]` : podIP}:${port}`, pod }
}
