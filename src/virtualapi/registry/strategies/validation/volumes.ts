// Volumes of a pod: one source each, and what the common sources need.
import type { V1KeyToPath, V1Volume } from '@kubernetes/client-node'
import { fieldDuplicate, fieldForbidden, fieldRequired } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import { fieldRefCauses, resourceRefCauses } from './env.ts'
import { nonNegativeQuantity } from './resources.ts'
import { between, descendingPath, fileMode, label, noBacksteps, oneOf, required } from './values.ts'

type Volume = Data<V1Volume>
type Checks = { [Source in keyof Volume]?: (path: string, source: NonNullable<Volume[Source]>) => StatusCause[] }

const fileFieldPaths = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
]
const hostPathTypes = ['DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice']

const checks: Checks = {
  emptyDir: (path, { sizeLimit }) =>
    sizeLimit === undefined ? [] : nonNegativeQuantity(`${path}.sizeLimit`, sizeLimit),
  hostPath: (path, { path: file, type }) =>
    file === ''
      ? [fieldRequired(`${path}.path`)]
      : [...noBacksteps(`${path}.path`, file), ...oneOf(`${path}.type`, type, [...hostPathTypes].sort())],
  persistentVolumeClaim: (path, { claimName }) => required(`${path}.claimName`, claimName),
  configMap: (path, { name, defaultMode, items }) => [
    ...required(`${path}.name`, name),
    ...fileMode(`${path}.defaultMode`, defaultMode),
    ...itemCauses(`${path}.items`, items),
  ],
  secret: (path, { secretName, defaultMode, items }) => [
    ...required(`${path}.secretName`, secretName),
    ...fileMode(`${path}.defaultMode`, defaultMode),
    ...itemCauses(`${path}.items`, items),
  ],
  nfs: (path, { server, path: directory }) => [
    ...required(`${path}.server`, server),
    ...required(`${path}.path`, directory),
    ...(directory !== '' && !directory.startsWith('/')
      ? [
          {
            reason: 'FieldValueInvalid',
            message: `Invalid value: ${JSON.stringify(directory)}: must be an absolute path`,
            field: `${path}.path`,
          },
        ]
      : []),
  ],
  csi: (path, { driver }) => required(`${path}.driver`, driver),
  ephemeral: (path, { volumeClaimTemplate }) =>
    volumeClaimTemplate === undefined ? [fieldRequired(`${path}.volumeClaimTemplate`)] : [],
  downwardAPI: (path, { defaultMode, items }) => [
    ...fileMode(`${path}.defaultMode`, defaultMode),
    ...(items ?? []).flatMap((item, index) => downwardCauses(`${path}.items[${index}]`, item)),
  ],
  projected: (path, { defaultMode, sources }) => [
    ...fileMode(`${path}.defaultMode`, defaultMode),
    ...(sources ?? []).flatMap((source, index) => projectionCauses(`${path}.sources[${index}]`, source)),
  ],
}

type DownwardFile = NonNullable<NonNullable<Volume['downwardAPI']>['items']>[number]
type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number]

/** What is wrong with the volumes of a pod. */
export function volumeCauses(path: string, volumes: readonly Volume[] | undefined): StatusCause[] {
  const names = new Set<string>()
  return (volumes ?? []).flatMap((volume, index) => {
    const at = `${path}[${index}]`
    const causes = sourceCauses(at, volume)
    const { name } = volume
    if (name === '') causes.push(fieldRequired(`${at}.name`))
    else {
      const wrong = label(`${at}.name`, name)
      causes.push(...wrong)
      if (wrong.length === 0 && names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
    }
    names.add(name)
    return causes
  })
}

/** The volumes that mounts may name. */
export function validVolumes(volumes: readonly Volume[] | undefined): Map<string, Volume> {
  const result = new Map<string, Volume>()
  for (const volume of volumes ?? [])
    if (!result.has(volume.name) && volumeCauses('', [volume]).length === 0) result.set(volume.name, volume)
  return result
}

function sourceCauses(path: string, volume: Volume): StatusCause[] {
  const causes: StatusCause[] = []
  let seen = 0
  for (const [source, value] of Object.entries(volume)) {
    if (source === 'name') continue
    if (++seen > 1) causes.push(fieldForbidden(`${path}.${source}`, 'may not specify more than 1 volume type'))
    else {
      const check = checks[source as keyof Volume] as ((path: string, source: unknown) => StatusCause[]) | undefined
      causes.push(...(check?.(`${path}.${source}`, value) ?? []))
    }
  }
  if (seen === 0) causes.push(fieldRequired(path, 'must specify a volume type'))
  return causes
}

function itemCauses(path: string, items: readonly Data<V1KeyToPath>[] | undefined): StatusCause[] {
  return (items ?? []).flatMap(({ key, path: file, mode }, index) => [
    ...required(`${path}[${index}].key`, key),
    ...required(`${path}[${index}].path`, file),
    ...descendingPath(`${path}[${index}].path`, file),
    ...fileMode(`${path}[${index}].mode`, mode),
  ])
}

function downwardCauses(path: string, { path: file, fieldRef, resourceFieldRef, mode }: DownwardFile): StatusCause[] {
  const causes = [...required(`${path}.path`, file), ...descendingPath(`${path}.path`, file)]
  if (fieldRef) {
    causes.push(...fieldRefCauses(`${path}.fieldRef`, fieldRef, fileFieldPaths))
    if (resourceFieldRef)
      causes.push({
        reason: 'FieldValueInvalid',
        message: 'Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously',
        field: path,
      })
  } else if (resourceFieldRef)
    causes.push(...resourceRefCauses(`${path}.resourceFieldRef`, resourceFieldRef, { needsContainer: true }))
  else causes.push(fieldRequired(path, 'one of fieldRef and resourceFieldRef is required'))
  return [...causes, ...fileMode(`${path}.mode`, mode)]
}

function projectionCauses(path: string, source: Projection): StatusCause[] {
  const { secret, configMap, downwardAPI, serviceAccountToken } = source
  const causes: StatusCause[] = []
  if (secret)
    causes.push(...required(`${path}.secret.name`, secret.name), ...itemCauses(`${path}.secret.items`, secret.items))
  if (configMap)
    causes.push(
      ...required(`${path}.configMap.name`, configMap.name),
      ...itemCauses(`${path}.configMap.items`, configMap.items),
    )
  if (downwardAPI)
    causes.push(
      ...(downwardAPI.items ?? []).flatMap((item, index) =>
        downwardCauses(`${path}.downwardAPI.items[${index}]`, item),
      ),
    )
  if (serviceAccountToken) {
    const { expirationSeconds, path: file } = serviceAccountToken
    const at = `${path}.serviceAccountToken`
    if (expirationSeconds !== undefined && expirationSeconds < 600)
      causes.push({
        reason: 'FieldValueInvalid',
        message: `Invalid value: ${expirationSeconds}: may not specify a duration less than 10 minutes`,
        field: `${at}.expirationSeconds`,
      })
    causes.push(
      ...between(`${at}.expirationSeconds`, expirationSeconds, -Infinity, 2 ** 32),
      ...required(`${at}.path`, file),
    )
  }
  return causes
}
