// Validation of volumes whose files the kubelet writes: ConfigMap, Secret, downward API, and projections of these and
// of tokens.
import type { V1DownwardAPIVolumeFile, V1KeyToPath, V1VolumeProjection } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { fieldRefCauses, resourceRefCauses } from './env.ts'
import { fileMode, unreservedRelativePath, required } from './values.ts'

type Items = readonly Data<V1KeyToPath>[] | undefined
type Files = readonly Data<V1DownwardAPIVolumeFile>[] | undefined
type Projection = Data<V1VolumeProjection>

const fileFieldPaths = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
]

/** Validates which keys are written to which files. */
export function itemsCauses(path: string, items: Items): StatusCause[] {
  return (items ?? []).flatMap((item, index) => itemCauses(`${path}[${index}]`, item))
}

function itemCauses(path: string, { key, path: file, mode }: Data<V1KeyToPath>): StatusCause[] {
  return [
    ...required(`${path}.key`, key),
    ...required(`${path}.path`, file),
    ...unreservedRelativePath(`${path}.path`, file),
    ...fileMode(`${path}.mode`, mode),
  ]
}

/** Validates downward API files. As upstream, paths have no index of the file. */
export function downwardCauses(path: string, files: Files): StatusCause[] {
  return (files ?? []).flatMap((file) => downwardFileCauses(path, file))
}

function downwardFileCauses(path: string, file: Data<V1DownwardAPIVolumeFile>): StatusCause[] {
  const { path: name, fieldRef, resourceFieldRef, mode } = file
  const causes = [...required(`${path}.path`, name), ...unreservedRelativePath(`${path}.path`, name)]
  if (fieldRef) {
    causes.push(...fieldRefCauses(`${path}.fieldRef`, fieldRef, fileFieldPaths))
    if (resourceFieldRef)
      causes.push(fieldInvalid(path, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'))
  } else if (resourceFieldRef)
    causes.push(...resourceRefCauses(`${path}.resourceFieldRef`, resourceFieldRef, { needsContainer: true }))
  else causes.push(fieldRequired(path, 'one of fieldRef and resourceFieldRef is required'))
  return [...causes, ...fileMode(`${path}.mode`, mode)]
}

/**
 * Validates the sources of a projected volume: no two may write the same file. `path`: that of the member `projected`.
 */
export function projectionsCauses(path: string, sources: readonly Projection[] | null | undefined): StatusCause[] {
  const written = new Set<string>()
  return (sources ?? []).flatMap((source, index) =>
    projectionCauses(path, `${path}.sources[${index}]`, source, written),
  )
}

function projectionCauses(path: string, at: string, source: Projection, written: Set<string>): StatusCause[] {
  const { secret, configMap, downwardAPI, serviceAccountToken: token } = source
  const duplicateCauses = (file: string, shown: string): StatusCause[] => {
    if (file === '' || !written.has(file)) {
      written.add(file)
      return []
    }
    return [fieldInvalid(path, shown, 'conflicting duplicate paths')]
  }
  const keyed = (member: string, from: { name?: string; items?: Data<V1KeyToPath>[] } | undefined): StatusCause[] =>
    from === undefined
      ? []
      : [
          ...required(`${at}.${member}.name`, from.name),
          ...(from.items ?? []).flatMap((item, index) => [
            ...itemCauses(`${at}.${member}.items[${index}]`, item),
            ...duplicateCauses(item.path, from.name ?? ''),
          ]),
        ]
  const count = [secret, configMap, downwardAPI, token].filter(Boolean).length
  return [
    ...keyed('secret', secret),
    ...keyed('configMap', configMap),
    ...(downwardAPI?.items ?? []).flatMap((file) => [
      ...downwardFileCauses(`${at}.downwardAPI`, file),
      ...duplicateCauses(file.path, file.path),
    ]),
    ...(token === undefined ? [] : tokenCauses(path, `${at}.serviceAccountToken`, token)),
    ...(count > 1 ? [fieldForbidden(at, 'may not specify more than 1 volume type per source')] : []),
  ]
}

type Token = NonNullable<Projection['serviceAccountToken']>

/** As upstream, errors about the token's file are reported at the volume, not at the source. */
function tokenCauses(path: string, at: string, { expirationSeconds = 3600, path: file }: Token): StatusCause[] {
  const life = `${at}.expirationSeconds`
  const causes: StatusCause[] = []
  if (expirationSeconds < 600)
    causes.push(fieldInvalid(life, expirationSeconds, 'may not specify a duration less than 10 minutes'))
  if (expirationSeconds > 2 ** 32)
    causes.push(fieldInvalid(life, expirationSeconds, 'may not specify a duration larger than 2^32 seconds'))
  return [...causes, ...required(`${path}.path`, file), ...unreservedRelativePath(`${path}.path`, file)]
}
