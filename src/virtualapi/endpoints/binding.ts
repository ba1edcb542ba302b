// POST pods/NAME/binding: the pod runs on that node from now on. Whoever decides that says it once.
import { isJsonObject } from '../../apimachinery/meta/index.ts'
import { badRequest, conflict } from '../../apimachinery/status/index.ts'
import { timestamp } from '../../async/index.ts'
import { jsonDocument } from '../codec/answers.ts'
import { decodeBody } from '../codec/read-object.ts'
import type { Answer } from '../server/exchange.ts'
import type { Call } from './call.ts'
import { requireContentType } from './create.ts'

interface PodParts {
  spec?: { nodeName?: string }
  status?: { conditions?: { type: string }[] }
}

export async function bindPod(call: Call): Promise<Answer> {
  const { exchange, parts, target, request, definition } = call
  const { value } = decodeBody(await exchange.request.body(), requireContentType(exchange.header('content-type')))
  const binding = isJsonObject(value) ? value : {}
  const node = isJsonObject(binding['target']) ? binding['target']['name'] : undefined
  const uid = isJsonObject(binding['metadata']) ? binding['metadata']['uid'] : undefined
  if (typeof node !== 'string' || node === '') throw badRequest('the body must be a Binding whose target names a Node')
  await parts.registry.update(target, request.name, {
    subresource: 'binding',
    change: (current) => {
      if (current === undefined) throw badRequest('there is no pod to bind')
      if (typeof uid === 'string' && uid !== current.metadata.uid)
        throw conflict(
          definition.info,
          request.name,
          `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid ?? ''}`,
        )
      const { spec = {}, status = {} } = current as PodParts
      if (spec.nodeName)
        throw conflict(
          definition.info,
          request.name,
          `pod ${request.name} is already assigned to node "${spec.nodeName}"`,
        )
      const others = (status.conditions ?? []).filter(({ type }) => type !== 'PodScheduled')
      const scheduled = {
        type: 'PodScheduled',
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: timestamp(target.context.now),
      }
      return {
        ...current,
        spec: { ...spec, nodeName: node },
        status: { ...status, conditions: [...others, scheduled] },
      }
    },
  })
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }, { status: 201 })
}
