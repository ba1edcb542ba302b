// Pod-level requests and limits (KEP-2837): completed from the containers if the pod sets any.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { isPodLevelResource, quantityText, totalOfContainers } from '#apimachinery/quantity/index.ts'
import { objectIn } from './default-functions.ts'

const isHugePages = (name: string): boolean => name.startsWith('hugepages-')

/** Completes the pod-level requests and limits. Mutates `spec.resources`. */
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
    if (isPodLevelResource(name) && !isHugePages(name)) requests[name] ??= quantityText(amount)
  for (const [name, amount] of Object.entries(limits)) if (isPodLevelResource(name)) requests[name] ??= amount
  if (Object.keys(requests).length > 0) resources['requests'] = requests
}
