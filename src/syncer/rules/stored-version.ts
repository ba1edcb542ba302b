// The version in which an API is asked for its objects.
import { isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'

/** The stored version if it is served, else the first one that is. */
export function storedVersion(spec: JsonObject): string | undefined {
  const versions = Array.isArray(spec['versions']) ? spec['versions'].filter(isJsonObject) : []
  const served = versions.filter(({ served }) => served === true)
  const name = (served.find(({ storage }) => storage === true) ?? served[0])?.['name']
  return typeof name === 'string' ? name : undefined
}
