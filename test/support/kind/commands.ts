// The commands by which a cluster of kind is made, used and deleted. Pure.
import { parse, stringify } from 'yaml'
import type { ContainerEngine } from './engine.ts'

/** A program with its arguments; `input` is its standard input, `env` is added to ours. */
export interface Command {
  readonly program: 'kind' | ContainerEngine
  readonly args: readonly string[]
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

export interface KindCluster {
  readonly engine: ContainerEngine
  /** As kind knows it: unique on this machine. */
  readonly name: string
}

/** The name by which kind knows a cluster of a run. */
export const kindName = (run: string, cluster: string): string => `kcp-${run}-${cluster}`
/** The container that is the node of a cluster. */
export const nodeOf = ({ name }: KindCluster): string => `${name}-control-plane`

const network = 'kind'
const environmentOf = (engine: ContainerEngine): Record<string, string> => ({ KIND_EXPERIMENTAL_PROVIDER: engine })

/** Creates the cluster and waits for its node; `base` is the text of test/e2e/kind.yaml. */
export function createCommand(
  { engine, name }: KindCluster,
  {
    base,
    kubeconfig,
    podCidr,
    serviceCidr,
  }: { base: string; kubeconfig: string; podCidr: string; serviceCidr: string },
): Command {
  const networking = { podSubnet: podCidr, serviceSubnet: serviceCidr }
  const input = stringify({ ...(parse(base) as object), networking })
  const args = ['create', 'cluster', '--name', name, '--kubeconfig', kubeconfig, '--config', '-', '--wait', '180s']
  return { program: 'kind', args, input, env: environmentOf(engine) }
}

/** Deletes it; succeeds where it is gone. */
export function deleteCommand({ engine, name }: KindCluster, kubeconfig: string): Command {
  const args = ['delete', 'cluster', '--name', name, '--kubeconfig', kubeconfig]
  return { program: 'kind', args, env: environmentOf(engine) }
}

/** Makes the images of an archive available to pods. */
export function loadCommand({ engine, name }: KindCluster, archive: string): Command {
  return { program: 'kind', args: ['load', 'image-archive', archive, '--name', name], env: environmentOf(engine) }
}

/** A kubeconfig whose server other containers reach, on standard output. */
export function internalKubeconfigCommand({ engine, name }: KindCluster): Command {
  return { program: 'kind', args: ['get', 'kubeconfig', '--internal', '--name', name], env: environmentOf(engine) }
}

/** Runs a program in the node. */
export function inNode(cluster: KindCluster, program: string, args: readonly string[]): Command {
  return { program: cluster.engine, args: ['exec', nodeOf(cluster), program, ...args] }
}

/** Prints the network of all clusters of kind as JSON: this machine's address in it, and those of the nodes. */
export function networkCommand(engine: ContainerEngine): Command {
  return { program: engine, args: ['network', 'inspect', network] }
}

/** What `networkCommand` printed: the IPv4 address of this machine, and that of the node. Throws if one is missing. */
export function readNetwork(text: string, node: string): { gateway: string; address: string } {
  const [found] = JSON.parse(text) as [NetworkDescription?]
  const gateways = [...(found?.IPAM?.Config ?? []), ...(found?.subnets ?? [])].map(
    ({ Gateway, gateway }) => Gateway ?? gateway,
  )
  const gateway = gateways.find((one) => one !== undefined && !one.includes(':'))
  const containers = Object.values(found?.Containers ?? found?.containers ?? {})
  const container = containers.find((one) => (one.Name ?? one.name) === node)
  const addresses = [container?.IPv4Address, ...Object.values(container?.interfaces ?? {}).flatMap(subnetsOf)]
  const address = addresses.find((one) => one !== undefined && one !== '' && !one.includes(':'))?.split('/')[0]
  if (gateway === undefined || address === undefined)
    throw new Error(`network "${network}" of the container engine has no IPv4 address for this machine and "${node}"`)
  return { gateway, address }
}

/** Docker's names, and podman's. */
interface NetworkDescription {
  readonly IPAM?: { readonly Config?: readonly Subnet[] }
  readonly subnets?: readonly Subnet[]
  readonly Containers?: Readonly<Record<string, Container>>
  readonly containers?: Readonly<Record<string, Container>>
}
interface Subnet {
  readonly Gateway?: string
  readonly gateway?: string
  readonly ipnet?: string
}
interface Container {
  readonly Name?: string
  readonly name?: string
  readonly IPv4Address?: string
  readonly interfaces?: Readonly<Record<string, { readonly subnets?: readonly Subnet[] }>>
}

function subnetsOf({ subnets = [] }: { readonly subnets?: readonly Subnet[] }): (string | undefined)[] {
  return subnets.map(({ ipnet }) => ipnet)
}

/** Lets pods of two clusters reach each other: a route in either node. */
export function routeCommands(
  one: { cluster: KindCluster; address: string; podCidr: string },
  other: { cluster: KindCluster; address: string; podCidr: string },
): Command[] {
  return [
    inNode(one.cluster, 'ip', ['route', 'replace', other.podCidr, 'via', other.address]),
    inNode(other.cluster, 'ip', ['route', 'replace', one.podCidr, 'via', one.address]),
  ]
}
