// Node ports that a Service has upstream and a member could not give it, because another Service there has them or they
// are out of its range. The member chooses others, and an Event says which.
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import { warnOnce } from './warning-event.ts'

interface Ports {
  readonly healthCheckNodePort?: number
  readonly ports?: readonly { readonly port?: number; readonly protocol?: string; readonly nodePort?: number }[]
}

/** Writes an Event on the Service for the ports that differ in `copy`. */
export async function reportOtherPorts(reconcile: Reconcile, service: CachedObject, copy: CachedObject): Promise<void> {
  const others = otherPorts(service, copy)
  if (others.length === 0) return
  const list = others.map(({ what, wanted, given }) => `${given} instead of ${wanted} for ${what}`).join(', ')
  const message = `member cluster "${reconcile.member.name}" could not give the node ports of the Service: there, it has ${list}`
  await warnOnce(reconcile, service, { reason: 'NodePortDiffers', message })
}

interface OtherPort {
  readonly what: string
  readonly wanted: number
  readonly given: number
}

/** The node ports of a Service that its copy in a member has not. */
function otherPorts(service: CachedObject, copy: CachedObject): OtherPort[] {
  const [wanted, given] = [service, copy].map((one) => (one['spec'] ?? {}) as Ports) as [Ports, Ports]
  const pairs = (wanted.ports ?? []).map(({ port, protocol = 'TCP', nodePort }) => ({
    what: `port ${port}/${protocol}`,
    wanted: nodePort,
    given: given.ports?.find((one) => one.port === port && (one.protocol ?? 'TCP') === protocol)?.nodePort,
  }))
  const health = { what: 'health checks', wanted: wanted.healthCheckNodePort, given: given.healthCheckNodePort }
  return [...pairs, health].flatMap((pair) =>
    pair.wanted && pair.given && pair.wanted !== pair.given
      ? [{ what: pair.what, wanted: pair.wanted, given: pair.given }]
      : [],
  )
}
