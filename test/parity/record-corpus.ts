// Sends every manifest of the corpus to a real kube-apiserver, and saves the answers beside them.
//
//   KUBE_SERVER=https://127.0.0.1:6443 KUBE_TOKEN=... NODE_TLS_REJECT_UNAUTHORIZED=0 node test/parity/record-corpus.ts
//
// The server must be a fresh one, without controllers, and with the ServiceAccount plugin disabled.
import { builtInResourceOfKind } from '#virtualapi/kinds/resources/builtin-resources.ts'
import { parseApiVersion, resourcePath, type KubeObject } from '#apimachinery/meta/index.ts'
import type { Status } from '#apimachinery/status/index.ts'
import { comparable, readCorpus, writeCorpus, type Case } from './corpus.ts'

const server = process.env['KUBE_SERVER'] ?? ''
const token = process.env['KUBE_TOKEN'] ?? ''

for (const name of ['valid', 'invalid'] as const) {
  const cases = readCorpus(name)
  for (const one of cases) await record(one)
  writeCorpus(name, cases)
}

async function record(one: Case): Promise<void> {
  const { object, old } = one
  if (old !== undefined) await send('POST', old)
  const answer = await send(old === undefined ? 'POST' : 'PUT', object)
  if (answer.kind === 'Status') one.status = answer as unknown as Status
  else one.answer = comparable(answer)
}

async function send(method: 'POST' | 'PUT', object: KubeObject): Promise<KubeObject> {
  const info = builtInResourceOfKind({ ...parseApiVersion(object.apiVersion), kind: object.kind })
  if (info === undefined) throw new Error(`no resource for ${object.kind}`)
  const { name = '', namespace = 'default' } = object.metadata
  const path = resourcePath(info, {
    ...(info.namespaced ? { namespace } : {}),
    ...(method === 'PUT' ? { name } : {}),
  })
  const response = await fetch(`${server}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(object),
  })
  return (await response.json()) as KubeObject
}
