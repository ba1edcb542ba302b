// Updates and reads of an object of 2 KB, one after the other: their times, and the processor time of the server.
import type { Endpoint } from './load.ts'
import { cpuSeconds, withChildren } from './process-usage.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const data = { text: 'x'.repeat(2000) }

/** Makes the object. */
export async function prepareObject(tenant: Endpoint): Promise<void> {
  await tenant.json('POST', maps, JSON.stringify({ metadata: { name: 'one' }, data }))
}

/** The milliseconds of each of `count` pairs of an update and a read. */
export async function writeAndRead(tenant: Endpoint, count: number): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const began = performance.now()
    await tenant.json('PUT', `${maps}/one`, JSON.stringify({ metadata: { name: 'one' }, data: { ...data, n: `${i}` } }))
    await tenant.json('GET', `${maps}/one`)
    times.push(performance.now() - began)
  }
  return times
}

/** Seconds of processor time of a process and its children so far. */
export function cpuOf(pid: number): number {
  return cpuSeconds(withChildren(pid))
}
