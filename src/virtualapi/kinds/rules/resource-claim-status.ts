// The status of a ResourceClaim: allocation, reservations, and the state of the devices as reported by drivers.
import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type {
  V1AllocatedDeviceStatus,
  V1AllocationResult,
  V1DeviceAllocationConfiguration,
  V1DeviceRequestAllocationResult,
  V1NetworkDeviceData,
  V1ResourceClaimStatus,
} from '@kubernetes/client-node'
import {
  byteLength,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  fieldTooLong,
  fieldTooMany,
} from '#apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { conditionsCauses } from '#virtualapi/kinds/validation/conditions.ts'
import { deviceConfigCauses, rawObjectCauses } from '#virtualapi/kinds/validation/device-config.ts'
import {
  listCauses,
  poolNameCauses,
  repeatedCauses,
  requestReferenceCauses,
  type RequestNames,
} from '#virtualapi/kinds/validation/device-names.ts'
import { referencesCauses, requestNamesOf, type DeviceClaim } from '#virtualapi/kinds/validation/device-requests.ts'
import { driverNameCauses } from '#virtualapi/kinds/validation/driver-name.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { nodeSelectorCauses } from '#virtualapi/kinds/validation/node-selector.ts'
import { fieldImmutable, label, requiredOneOf } from '#virtualapi/kinds/validation/values.ts'

type Status = Data<V1ResourceClaimStatus>
type Allocation = Data<V1AllocationResult>
type Result = Data<V1DeviceRequestAllocationResult>
type DeviceStatus = Data<V1AllocatedDeviceStatus>

const most = { reserved: 256, results: 32, configs: 64, conditions: 8, addresses: 16 } as const
const longest = { interfaceName: 256, hardwareAddress: 128 } as const

const statusOf = ({ status }: KubeObject): Status => status ?? {}
const resultsOf = ({ allocation }: Status): readonly Result[] => allocation?.devices?.results ?? []
const idOf = ({ driver, pool, device }: { driver: string; pool: string; device: string }): string =>
  JSON.stringify([driver, pool, device])

/** Drops fields that upstream's default feature gates drop. Mutates the object. */
export function dropDisabledResults(object: KubeObject): void {
  const status = statusOf(object)
  delete status.allocation?.allocationTimestamp
  for (const result of resultsOf(status))
    for (const member of ['bindingConditions', 'bindingFailureConditions', 'shareID', 'consumedCapacity'] as const)
      Reflect.deleteProperty(result, member)
  for (const device of status.devices ?? []) delete device.shareID
}

/** Drops the status of devices that are no longer allocated. Mutates `object`. */
export function dropReleasedDevices(object: KubeObject, old: KubeObject): void {
  const status = statusOf(object)
  if (status.devices === undefined) return
  const kept = new Set(resultsOf(status).map(idOf))
  const released = new Set(
    resultsOf(statusOf(old))
      .map(idOf)
      .filter((id) => !kept.has(id)),
  )
  status.devices = status.devices.filter((device) => !released.has(idOf(device)))
  if (status.devices.length === 0) delete status.devices
}

/** Validation errors of an update through the subresource `status`. */
export function resourceClaimStatusCauses(object: KubeObject, old: KubeObject, claim: DeviceClaim): StatusCause[] {
  const status = statusOf(object)
  const { reservedFor = [], devices = [], allocation } = status
  const allocated = new Set(resultsOf(status).map(idOf))
  return [
    ...listCauses('status.reservedFor', reservedFor, most.reserved, (path, { resource, name, uid }) => [
      ...(resource === '' ? [fieldRequired(`${path}.resource`)] : []),
      ...(name === '' ? [fieldRequired(`${path}.name`)] : []),
      ...(uid === '' ? [fieldRequired(`${path}.uid`)] : []),
    ]),
    ...repeatedCauses(
      'status.reservedFor',
      reservedFor.map(({ uid }) => uid),
      'uid',
    ),
    ...listCauses('status.devices', devices, -1, (path, device) => deviceStatusCauses(path, device, allocated)),
    ...repeatedDeviceCauses('status.devices', devices),
    ...reservationCauses(object, old),
    ...(allocation === undefined ? [] : allocationCauses('status.allocation', allocation, statusOf(old), claim)),
  ]
}

function reservationCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const { reservedFor = [], allocation } = statusOf(object)
  if (reservedFor.length === 0) return []
  const path = 'status.reservedFor'
  if (allocation === undefined) return [fieldForbidden(path, 'may not be specified when `allocated` is not set')]
  if (object.metadata.deletionTimestamp === undefined) return []
  const before = new Set((statusOf(old).reservedFor ?? []).map((one) => JSON.stringify(one)))
  return reservedFor.every((one) => before.has(JSON.stringify(one)))
    ? []
    : [
        fieldForbidden(
          path,
          'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set',
        ),
      ]
}

function allocationCauses(path: string, allocation: Allocation, before: Status, claim: DeviceClaim): StatusCause[] {
  if (before.allocation !== undefined)
    return isDeepStrictEqual(allocation, before.allocation)
      ? []
      : [invalidInternal(path, 'resource.AllocationResult', allocation, fieldImmutable)]
  const names = requestNamesOf(claim)
  const { results = [], config = [] } = allocation.devices ?? {}
  return [
    ...listCauses(`${path}.devices.results`, results, most.results, (at, result) => resultCauses(at, result, names)),
    ...listCauses(`${path}.devices.config`, config, most.configs, (at, one) => configCauses(at, one, names)),
    ...(allocation.nodeSelector === undefined
      ? []
      : nodeSelectorCauses(`${path}.nodeSelector`, allocation.nodeSelector)),
  ]
}

function resultCauses(path: string, { request, driver, pool, device }: Result, names: RequestNames): StatusCause[] {
  return [
    ...requestReferenceCauses(`${path}.request`, request, names),
    ...driverNameCauses(`${path}.driver`, driver),
    ...poolNameCauses(`${path}.pool`, pool),
    ...label(`${path}.device`, device),
  ]
}

function configCauses(path: string, config: Data<V1DeviceAllocationConfiguration>, names: RequestNames): StatusCause[] {
  return [
    ...requiredOneOf(`${path}.source`, config.source, ['FromClaim', 'FromClass']),
    ...referencesCauses(`${path}.requests`, config.requests ?? [], names),
    ...deviceConfigCauses(path, config, { stored: false }),
  ]
}

function deviceStatusCauses(path: string, status: DeviceStatus, allocated: ReadonlySet<string>): StatusCause[] {
  const { driver, pool, device, networkData } = status
  const data = status.data as JsonValue | undefined
  const conditions = (status.conditions as DeviceStatus['conditions'] | null) ?? []
  return [
    ...driverNameCauses(`${path}.driver`, driver),
    ...poolNameCauses(`${path}.pool`, pool),
    ...label(`${path}.device`, device),
    ...(allocated.has(idOf(status))
      ? []
      : [
          {
            reason: 'FieldValueInvalid',
            message: `Invalid value: ${shownId}: must be an allocated device in the claim`,
            field: path,
          },
        ]),
    ...(conditions.length > most.conditions
      ? [fieldTooMany(`${path}.conditions`, conditions.length, most.conditions)]
      : []),
    ...conditionsCauses(`${path}.conditions`, conditions),
    ...(data === undefined ? [] : rawObjectCauses(`${path}.data`, data)),
    ...(networkData === undefined ? [] : networkCauses(`${path}.networkData`, networkData)),
  ]
}

/** As upstream, whose device id prints without its content. */
const shownId = '{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}'

function repeatedDeviceCauses(path: string, devices: readonly DeviceStatus[]): StatusCause[] {
  const seen = new Set<string>()
  return devices.flatMap((device, index) => {
    const id = idOf(device)
    if (seen.has(id)) {
      const field = `${path}[${index}].deviceID`
      return [{ reason: 'FieldValueDuplicate', message: `Duplicate value: ${shownId}`, field }]
    }
    seen.add(id)
    return []
  })
}

function networkCauses(path: string, network: Data<V1NetworkDeviceData>): StatusCause[] {
  const { ips = [] } = network
  return [
    ...(['interfaceName', 'hardwareAddress'] as const).flatMap((member) =>
      byteLength(network[member] ?? '') > longest[member] ? [fieldTooLong(`${path}.${member}`, longest[member])] : [],
    ),
    ...listCauses(`${path}.ips`, ips, most.addresses, interfaceAddressCauses),
    ...repeatedCauses(`${path}.ips`, ips, ''),
  ]
}

function interfaceAddressCauses(path: string, address: string): StatusCause[] {
  const [ip = '', bits = '', ...more] = address.split('/')
  const family = isIP(ip)
  const good = family !== 0 && more.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
  if (!good)
    return [fieldInvalid(path, address, 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)')]
  const canonicalIp = family === 4 ? ip : new URL(`http://[${ip}]`).hostname.slice(1, -1)
  const canonical = `${canonicalIp}/${Number(bits)}`
  return canonical === address ? [] : [fieldInvalid(path, address, `must be in canonical form ("${canonical}")`)]
}
