// Validation of pod annotations that preceded fields and must not contradict them, and of a few others.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'
import { isJsonObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { containersOf } from './pod-os.ts'
import type { PodSpec } from './pod-spec.ts'
import { tolerationCauses } from './scheduling.ts'
import { relativePathInside } from './values.ts'

type Annotations = Readonly<Record<string, string>>
type Toleration = NonNullable<PodSpec['tolerations']>[number]

export const mirrorAnnotation = 'kubernetes.io/config.mirror'
const tolerationsAnnotation = 'scheduler.alpha.kubernetes.io/tolerations'
const costAnnotation = 'controller.kubernetes.io/pod-deletion-cost'
export const seccompOfPod = 'seccomp.security.alpha.kubernetes.io/pod'
export const seccompOfContainer = 'container.seccomp.security.alpha.kubernetes.io/'
export const appArmorOfContainer = 'container.apparmor.security.beta.kubernetes.io/'

/** Validation errors of the annotations of a pod or pod template. `path`: the path of the annotations. */
export function podAnnotationsCauses(path: string, annotations: Annotations | undefined, spec: PodSpec): StatusCause[] {
  if (annotations === undefined) return []
  const causes: StatusCause[] = []
  const mirror = annotations[mirrorAnnotation]
  if (mirror !== undefined && !spec.nodeName)
    causes.push(
      fieldInvalid(`${path}[${mirrorAnnotation}]`, mirror, 'must set spec.nodeName if mirror pod annotation is set'),
    )
  const cost = annotations[costAnnotation]
  if (cost !== undefined && !isCost(cost))
    causes.push(fieldInvalid(`${path}[${costAnnotation}]`, cost, 'must be a 32bit integer'))
  return [
    ...causes,
    ...tolerationsCauses(path, annotations[tolerationsAnnotation]),
    ...seccompAnnotationsCauses(path, annotations),
    ...appArmorAnnotationsCauses(path, annotations, spec),
  ]
}

function isCost(text: string): boolean {
  if (!/^(0|[1-9]\d{0,10}|-\d{1,20})$/.test(text)) return false
  return Number(text) >= -(2 ** 31) && Number(text) < 2 ** 31
}

function tolerationsCauses(path: string, text: string | undefined): StatusCause[] {
  if (!text) return []
  try {
    const list = parseJsonText(text) as Toleration[] | null
    if (!Array.isArray(list) || !list.every(isJsonObject)) return []
    return tolerationCauses(`${path}.${tolerationsAnnotation}`, list)
  } catch {
    return [fieldInvalid(path, tolerationsAnnotation, 'unexpected end of JSON input')]
  }
}

function seccompAnnotationsCauses(path: string, annotations: Annotations): StatusCause[] {
  return Object.entries(annotations).flatMap(([key, profile]) => {
    if (key !== seccompOfPod && !key.startsWith(seccompOfContainer)) return []
    if (['runtime/default', 'docker/default', 'unconfined'].includes(profile)) return []
    return profile.startsWith('localhost/')
      ? relativePathInside(`${path}.${key}`, profile.slice('localhost/'.length))
      : [fieldInvalid(`${path}.${key}`, profile, 'must be a valid seccomp profile')]
  })
}

function appArmorAnnotationsCauses(path: string, annotations: Annotations, spec: PodSpec): StatusCause[] {
  let names: Set<string> | undefined
  return Object.entries(annotations).flatMap(([key, profile]) => {
    if (!key.startsWith(appArmorOfContainer)) return []
    names ??= new Set(containersOf('', spec).map(([, { name }]) => name))
    const name = key.slice(appArmorOfContainer.length)
    const known = ['', 'runtime/default', 'unconfined'].includes(profile) || profile.startsWith('localhost/')
    return [
      ...(names.has(name) ? [] : [fieldInvalid(`${path}[${key}]`, name, 'container not found')]),
      ...(known
        ? []
        : [fieldInvalid(`${path}[${key}]`, profile, `invalid AppArmor profile name: ${JSON.stringify(profile)}`)]),
    ]
  })
}

interface Profile {
  readonly type: string
  readonly localhostProfile?: string
}

/** The AppArmor profile that an annotation stands for; undefined if it stands for none. */
export function profileOfAnnotation(annotation: string): Profile | undefined {
  if (annotation === 'unconfined') return { type: 'Unconfined' }
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' }
  return annotation.startsWith('localhost/')
    ? { type: 'Localhost', localhostProfile: annotation.slice('localhost/'.length) }
    : undefined
}

/** If a new pod or template sets a profile as annotation and as field, both must be equal. */
export function profileMatchCauses(path: string, { annotations }: ObjectMeta, spec: PodSpec): StatusCause[] {
  if (annotations === undefined) return []
  const ofPod = spec.securityContext
  const containers = containersOf(path, spec)
  const causes = matchCauses(
    `${path}.securityContext.seccompProfile`,
    'seccomp',
    annotations[seccompOfPod],
    ofPod?.seccompProfile,
  )
  for (const [at, { name, securityContext: own }] of containers)
    causes.push(
      ...matchCauses(
        `${at}.securityContext.seccompProfile`,
        'seccomp',
        annotations[seccompOfContainer + name],
        own?.seccompProfile,
      ),
    )
  if (spec.os?.name === 'windows') return causes
  for (const [at, { name, securityContext: own }] of containers)
    causes.push(
      ...matchCauses(
        `${at}.securityContext.appArmorProfile`,
        'apparmor',
        annotations[appArmorOfContainer + name],
        own?.appArmorProfile ?? ofPod?.appArmorProfile,
      ),
    )
  return causes
}

function matchCauses(
  path: string,
  what: 'seccomp' | 'apparmor',
  annotation: string | undefined,
  field: Profile | undefined,
): StatusCause[] {
  if (annotation === undefined || field === undefined) return []
  const other = [fieldForbidden(`${path}.type`, `${what} type in annotation and field must match`)]
  const defaults = what === 'seccomp' ? ['runtime/default', 'docker/default'] : ['runtime/default']
  if (field.type === 'Unconfined') return annotation === 'unconfined' ? [] : other
  if (field.type === 'RuntimeDefault') return defaults.includes(annotation) ? [] : other
  if (field.type !== 'Localhost') return []
  if (!annotation.startsWith('localhost/')) return other
  return annotation.slice('localhost/'.length) === field.localhostProfile
    ? []
    : [fieldForbidden(`${path}.localhostProfile`, `${what} profile in annotation and field must match`)]
}
