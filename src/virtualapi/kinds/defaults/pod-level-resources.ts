// Pod-level requests and limits (KEP-2837): completed from the containers if the pod sets any.
import type { JsonObject } from '../../../apimachinery/meta/index.ts'
import { isJsonObject } from '../../../apimachinery/meta/index.ts'
import { quantityOf, quantityText, type Quantity } from '../../resources/typed/quantity.ts'
import { objectIn, objectsIn } from './default-functions.ts'

type Amounts = Map<string, Quantity>
type Which = 'requests' | 'limits'

const isHugePages = (name: string): boolean => name.startsWith('hugepages-')
const isPodLevel = (name: string): boolean => name === 'cpu' || name === 'memory' || isHugePages(name)

/** Mutates `spec.resources`. */
export function podLevelResources(spec: JsonObject): void {
  const { resources } = spec
  if (!isJsonObject(resources)) return
  const limits = { ...objectIn(resources, 'limits') }
  const requests = { ...objectIn(resources, 'requests') }
  if (Object.keys(limits).length === 0 && Object.keys(requests).length === 0) return
  for (const [name, amount] of totalOfContainers(spec, 'limits'))
    if (isHugePages(name) && requests[name] === undefined) limits[name] ??= quantityText(amount)
  if (Object.keys(limits).length === 0) return
  resources['limits'] = limits
  for (const [name, amount] of totalOfContainers(spec, 'requests'))
    if (isPodLevel(name) && !isHugePages(name)) requests[name] ??= quantityText(amount)
  for (const [name, amount] of Object.entries(limits)) if (isPodLevel(name)) requests[name] ??= amount
  if (Object.keys(requests).length > 0) resources['requests'] = requests
}

/** What all containers need together: containers plus sidecars, or the largest init container if that is more. */
export function totalOfContainers(spec: JsonObject, which: Which): Amounts {
  const sum: Amounts = new Map()
  for (const container of objectsIn(spec, 'containers')) add(sum, amountsOf(container, which))
  const sidecars: Amounts = new Map()
  const initial: Amounts = new Map()
  for (const container of objectsIn(spec, 'initContainers')) {
    const own = amountsOf(container, which)
    if (container['restartPolicy'] === 'Always') {
      add(sum, own)
      add(sidecars, own)
      raise(initial, sidecars)
    } else {
      const together = new Map(own)
      add(together, sidecars)
      raise(initial, together)
    }
  }
  raise(sum, initial)
  return sum
}

function amountsOf(container: JsonObject, which: Which): Amounts {
  const list = objectIn(objectIn(container, 'resources'), which)
  return new Map(Object.entries(list).map(([name, text]) => [name, quantityOf(typeof text === 'string' ? text : '')]))
}

function add(to: Amounts, more: Amounts): void {
  for (const [name, { nanos, format }] of more) to.set(name, { format, nanos: (to.get(name)?.nanos ?? 0n) + nanos })
}

function raise(to: Amounts, other: Amounts): void {
  for (const [name, amount] of other) if (amount.nanos > (to.get(name)?.nanos ?? -1n)) to.set(name, amount)
}
