// The template that a tenant wrote, for an object that a member made of it. The object only names the hash of the
// template, and the text comes from upstream: for a hash without a template upstream, nothing is shown.
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { adoptedObject, contentHash, templateOf, unchangingHash } from '#crds/index.ts'
import type { WrittenTemplate } from '#syncer/context/former-templates.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { sourceHash } from '#syncer/transform/pod-template.ts'

/** The hash that a template or pod of the member names; undefined if it names none that can be read. */
export function claimedHash(template: unknown): string | undefined {
  try {
    const claimed: unknown = sourceHash(template ?? {})
    return typeof claimed === 'string' ? claimed : undefined
  } catch {
    return undefined
  }
}

/**
 * The hash of the template of an object that the member made of the workload. An object from before the adoption of its
 * workload names none: it has the template that the workload had then.
 */
export function hashIn({ member }: Scope, workload: CachedObject, template: unknown): string | undefined {
  const claimed = claimedHash(template)
  if (claimed !== undefined) return claimed
  const adopted = adoptedObject(workload)
  return adopted?.member === member.name ? adopted.content : undefined
}

/**
 * The template of this hash, if its tenant wrote it into the workload: now, lately, or in a revision that is upstream.
 */
export function writtenTemplate(
  scope: Scope,
  workload: CachedObject,
  hash: string | undefined,
): WrittenTemplate | undefined {
  if (hash === undefined) return undefined
  const present = templateOf(workload)
  if (present !== undefined && unchangingHash(present) === hash)
    return { template: present, annotations: workload.metadata.annotations ?? {} }
  return scope.context.upstream.formerTemplates.find(workload, hash) ?? inRevision(scope, workload, hash)
}

/** The template with this hash in an upstream ControllerRevision of a StatefulSet or DaemonSet; undefined: in none. */
function inRevision(
  scope: Scope,
  { kind, metadata: { uid } }: CachedObject,
  hash: string,
): WrittenTemplate | undefined {
  if (kind !== 'StatefulSet' && kind !== 'DaemonSet') return undefined
  for (const revision of scope.allUpstream('controllerrevisions')) {
    if (!revision.metadata.ownerReferences?.some((owner) => owner.uid === uid)) continue
    const template = templateOfRevision(revision)
    if (template !== undefined && contentHash(template) === hash) return { template, annotations: {} }
  }
  return undefined
}

/** The pod template of a ControllerRevision without `$patch`, the instruction to replace the template before. */
export function templateOfRevision({ data }: CachedObject): Record<string, unknown> | undefined {
  const spec = isJsonObject(data) ? data['spec'] : undefined
  const template = isJsonObject(spec) ? spec['template'] : undefined
  if (!isJsonObject(template)) return undefined
  const { $patch: _, ...rest } = template
  return rest
}
