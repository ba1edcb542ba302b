// Cells of Services, Endpoints, Ingresses, NetworkPolicies and IP addresses.
import { compareText, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { ageOf, firstOf, labelsText, nameOf, selectorOrNone } from '#virtualapi/codec/table/cells/format-cells.ts'
import {
  numberAt,
  objectAt,
  objectsAt,
  scalarText,
  textAt,
  textsAt,
  valueAt,
} from '#virtualapi/codec/table/cells/read-fields.ts'

export function serviceCells(object: JsonObject, nowMs: number): JsonValue[] {
  const ports = objectsAt(object, 'spec', 'ports').map(servicePort).join(',')
  return [
    nameOf(object),
    textAt(object, 'spec', 'type'),
    textsAt(object, 'spec', 'clusterIPs')[0] ?? '<none>',
    externalAddress(object),
    ports || '<none>',
    ageOf(object, nowMs),
    labelsText(objectAt(object, 'spec', 'selector')),
  ]
}

function servicePort(port: JsonObject): string {
  const nodePort = numberAt(port, 'nodePort')
  const number = nodePort > 0 ? `${numberAt(port, 'port')}:${nodePort}` : String(numberAt(port, 'port'))
  return `${number}/${textAt(port, 'protocol')}`
}

function externalAddress(service: JsonObject): string {
  const externalIPs = textsAt(service, 'spec', 'externalIPs')
  switch (textAt(service, 'spec', 'type')) {
    case 'ClusterIP':
    case 'NodePort':
      return externalIPs.join(',') || '<none>'
    case 'LoadBalancer':
      return [...loadBalancerAddresses(service), ...externalIPs].join(',') || '<pending>'
    case 'ExternalName':
      return textAt(service, 'spec', 'externalName')
    default:
      return '<unknown>'
  }
}

function loadBalancerAddresses(object: JsonObject): string[] {
  const addresses = objectsAt(object, 'status', 'loadBalancer', 'ingress')
    .map((ingress) => textAt(ingress, 'ip') || textAt(ingress, 'hostname'))
    .filter((address) => address !== '')
  return [...new Set(addresses)].sort(compareText)
}

export function ingressCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    scalarText(valueAt(object, 'spec', 'ingressClassName'), '<none>'),
    ingressHosts(objectsAt(object, 'spec', 'rules')),
    loadBalancerAddresses(object).join(','),
    objectsAt(object, 'spec', 'tls').length > 0 ? '80, 443' : '80',
    ageOf(object, nowMs),
  ]
}

/** The first three hosts. As upstream, the number of further hosts is computed from the rules. */
function ingressHosts(rules: readonly JsonObject[]): string {
  const hosts: string[] = []
  let more = false
  for (const rule of rules) {
    if (hosts.length === 3) more = true
    const host = textAt(rule, 'host')
    if (!more && host !== '') hosts.push(host)
  }
  if (hosts.length === 0) return '*'
  return more ? `${hosts.join(',')} + ${rules.length - 3} more...` : hosts.join(',')
}

export function ingressClassCells(object: JsonObject, nowMs: number): JsonValue[] {
  const parameters = objectAt(object, 'spec', 'parameters')
  const group = textAt(parameters, 'apiGroup')
  const kind = group === '' ? textAt(parameters, 'kind') : `${textAt(parameters, 'kind')}.${group}`
  return [
    nameOf(object),
    textAt(object, 'spec', 'controller'),
    valueAt(object, 'spec', 'parameters') === undefined ? '<none>' : `${kind}/${textAt(parameters, 'name')}`,
    ageOf(object, nowMs),
  ]
}

export function networkPolicyCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), selectorOrNone(objectAt(object, 'spec', 'podSelector')), ageOf(object, nowMs)]
}

export function endpointsCells(object: JsonObject, nowMs: number): JsonValue[] {
  const subsets = objectsAt(object, 'subsets')
  if (subsets.length === 0) return [nameOf(object), '<none>', ageOf(object, nowMs)]
  const most = 3
  const first: string[] = []
  for (const endpoint of endpointsOf(subsets)) if (first.push(endpoint) === most) break
  return [nameOf(object), firstOf(first, most, { count: countEndpoints(subsets) }), ageOf(object, nowMs)]
}

/** Yields the endpoints one after the other, because there may be as many as addresses times ports. */
function* endpointsOf(subsets: readonly JsonObject[]): Generator<string, undefined> {
  for (const subset of subsets) {
    const addresses = objectsAt(subset, 'addresses').map((address) => textAt(address, 'ip'))
    const ports = objectsAt(subset, 'ports')
    if (ports.length === 0) yield* addresses
    for (const port of ports) for (const ip of addresses) yield hostPort(ip, numberAt(port, 'port'))
  }
}

function countEndpoints(subsets: readonly JsonObject[]): number {
  return subsets
    .map((subset) => objectsAt(subset, 'addresses').length * Math.max(objectsAt(subset, 'ports').length, 1))
    .reduce((sum, count) => sum + count, 0)
}

function hostPort(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`
}

export function endpointSliceCells(object: JsonObject, nowMs: number): JsonValue[] {
  const ports = objectsAt(object, 'ports').map((port) =>
    scalarText(valueAt(port, 'port'), scalarText(valueAt(port, 'name'), '*')),
  )
  const addresses = objectsAt(object, 'endpoints').flatMap((endpoint) => textsAt(endpoint, 'addresses'))
  return [
    nameOf(object),
    textAt(object, 'addressType'),
    firstOf(ports, 3) || '<unset>',
    firstOf(addresses, 3) || '<unset>',
    ageOf(object, nowMs),
  ]
}

export function serviceCidrCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), textsAt(object, 'spec', 'cidrs').join(','), ageOf(object, nowMs)]
}

/** The cells of an IPAddress. As in kube-apiserver, there is one cell more than there are columns. */
export function ipAddressCells(object: JsonObject, nowMs: number): JsonValue[] {
  const parent = objectAt(object, 'spec', 'parentRef')
  const group = textAt(parent, 'group')
  const resource = textAt(parent, 'resource')
  const namespace = textAt(parent, 'namespace')
  const path = [
    (group === '' ? resource : `${resource}.${group}`).toLowerCase(),
    ...(namespace === '' ? [] : [namespace]),
    textAt(parent, 'name'),
  ]
  const known = valueAt(object, 'spec', 'parentRef') !== undefined
  return [nameOf(object), known ? path.join('/') : '<none>', ageOf(object, nowMs)]
}
