// The pod spec of each kind that makes pods.
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'

const paths: Readonly<Record<string, readonly string[]>> = {
  Pod: ['spec'],
  PodTemplate: ['template', 'spec'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
  ...Object.fromEntries(
    ['DaemonSet', 'Deployment', 'Job', 'ReplicaSet', 'ReplicationController', 'StatefulSet'].map((kind) => [
      kind,
      ['spec', 'template', 'spec'],
    ]),
  ),
}

/** The pod spec within an object of a built-in kind, not a copy; undefined if the object has none. */
export function podSpecOf(object: KubeObject): JsonObject | undefined {
  const path = paths[object.kind]
  if (path === undefined) return undefined
  let value: JsonValue | undefined = object as unknown as JsonObject
  for (const member of path) value = isJsonObject(value) ? value[member] : undefined
  return isJsonObject(value) ? value : undefined
}
