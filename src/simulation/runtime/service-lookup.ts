// Names of Services as pods use them, and the endpoint that a request goes to.
import { randomInt } from 'node:crypto'
import type { EndpointSlice } from '#simulation/cluster/objects.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'

export interface Target {
  readonly address: string
  readonly port: number
}

/** The URL `http://SERVICE[.NAMESPACE[...]][:PORT]/...` in its parts; undefined for another text. */
export function parseServiceUrl(
  text: string,
): { readonly host: string; readonly port: number; readonly path: string } | undefined {
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, port, pathname } = new URL(text)
  if (protocol !== 'http:') return undefined
  return { host: hostname, port: port === '' ? 80 : Number(port), path: pathname }
}

/**
 * A ready endpoint of the Service, for a pod in `namespace`. In a member, namespace `shop` of a logical cluster is called
 * `ID-shop`. Throws if there is no such Service or no endpoint.
 */
export function chooseEndpoint(
  simulation: Simulation,
  { namespace, host, port }: { readonly namespace: string; readonly host: string; readonly port: number },
): Target {
  const [name = '', other] = host.split('.')
  const { services, endpointslices } = simulation.cache
  const prefix = /^[a-z][a-z2-7]{9}-/.exec(namespace)?.[0] ?? ''
  const place =
    other === undefined ? namespace : services.get(`${prefix}${other}/${name}`) ? `${prefix}${other}` : other
  const service = services.get(`${place}/${name}`)
  if (service === undefined) throw new Error(`could not resolve host: ${host}`)
  const servicePort = service.spec.ports?.find((one) => one.port === port)
  if (servicePort === undefined)
    throw new Error(`connection to ${host} port ${port} timed out: the Service has no such port`)
  const slices = endpointslices
    .inNamespace(place)
    .filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === name)
  const chosen = readyTargets(slices, servicePort.name)
  if (chosen.length === 0) throw new Error(`connection to ${host} port ${port} refused: no ready endpoint`)
  return chosen[randomInt(chosen.length)] as Target
}

/** The endpoints that get requests: the ready ones; if there are none, those that end but still serve. */
export function readyTargets(slices: readonly EndpointSlice[], portName = ''): readonly Target[] {
  const [ready, ending]: [Target[], Target[]] = [[], []]
  for (const { endpoints, ports } of slices) {
    const port = (ports ?? []).find(({ name = '' }) => name === portName)?.port
    if (port === undefined) continue
    for (const { addresses, conditions = {} } of endpoints ?? []) {
      const [address] = addresses
      if (address === undefined) continue
      if (conditions.ready !== false) ready.push({ address, port })
      else if (conditions.serving === true && conditions.terminating === true) ending.push({ address, port })
    }
  }
  return ready.length > 0 ? ready : ending
}
