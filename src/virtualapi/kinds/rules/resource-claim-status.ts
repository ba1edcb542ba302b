// The status of a ResourceClaim: allocation, reservations, and the state of the devices as reported by drivers.
import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type {
  V1AllocatedDeviceStatus,
  V1AllocationResult,
  V1DeviceAllocationConfiguration,
  V1DeviceAllocationResult,
  V1DeviceRequestAllocationResult,
  V1NetworkDeviceData,
  V1ResourceClaimConsumerReference,
  V1ResourceClaimStatus,
} from '@kubernetes/client-node'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { driverName, label } from '#virtualapi/kinds/validation/basic-rules.ts'
import { conditions } from '#virtualapi/kinds/validation/conditions.ts'
import { deviceConfig, rawObject } from '#virtualapi/kinds/validation/device-config.ts'
import {
  keyedList,
  poolName,
  requestReference,
  requestReferences,
  type RequestNames,
} from '#virtualapi/kinds/validation/device-names.ts'
import { requestNamesOf, type DeviceClaim } from '#virtualapi/kinds/validation/device-requests.ts'
import { nodeSelector } from '#virtualapi/kinds/validation/node-selector.ts'
import {
  all,
  each,
  fieldImmutable,
  fields,
  maxBytes,
  maxItems,
  nonEmpty,
  oneOf,
  optional,
  required,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'

type Status = Data<V1ResourceClaimStatus>
type Result = Data<V1DeviceRequestAllocationResult>
type DeviceStatus = Data<V1AllocatedDeviceStatus>

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

type Consumer = Data<V1ResourceClaimConsumerReference>

const consumer = fields<Consumer>({
  resource: nonEmpty(),
  name: nonEmpty(),
  uid: nonEmpty(),
})

const result = fields<Result, RequestNames>({
  request: requestReference,
  driver: driverName,
  pool: poolName,
  device: label,
})

type Configuration = Data<V1DeviceAllocationConfiguration>

const unstored = { stored: false }
const configuration = all<Configuration, RequestNames>(
  fields<Configuration, RequestNames>({
    source: required(oneOf(['FromClaim', 'FromClass'])),
    requests: requestReferences,
  }),
  (config, report) => deviceConfig(config, report, unstored),
)

const newAllocation = fields<Data<V1AllocationResult>, RequestNames>({
  devices: optional(
    fields<Data<V1DeviceAllocationResult>, RequestNames>({
      results: keyedList(result, { most: 32 }),
      config: keyedList(configuration, { most: 64 }),
    }),
  ),
  nodeSelector: optional(nodeSelector),
})

const interfaceAddress: Rule<string> = (address, report) => {
  const [ip = '', bits = '', ...more] = address.split('/')
  const family = isIP(ip)
  const good = family !== 0 && more.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
  if (!good) {
    report.invalid('', address, 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)')
    return
  }
  const canonicalIp = family === 4 ? ip : new URL(`http://[${ip}]`).hostname.slice(1, -1)
  const canonical = `${canonicalIp}/${Number(bits)}`
  if (canonical !== address) report.invalid('', address, `must be in canonical form ("${canonical}")`)
}

/** The device id as upstream prints it in messages: without its content. */
const shownId = '{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}'

interface Allocated {
  /** Ids of the allocated devices. */
  readonly allocated: ReadonlySet<string>
}

const deviceStatus = all<DeviceStatus, Allocated>(
  fields<DeviceStatus>({ driver: driverName, pool: poolName, device: label }),
  (status, report, { allocated }) => {
    if (!allocated.has(idOf(status))) report.invalidText('', shownId, 'must be an allocated device in the claim')
  },
  fields<DeviceStatus>({
    conditions: all<DeviceStatus['conditions']>(maxItems(8), conditions),
    data: (data, report) => {
      if (data !== undefined) report.check(rawObject, data as JsonValue, unstored)
    },
    networkData: optional(
      fields<Data<V1NetworkDeviceData>>({
        interfaceName: maxBytes(256),
        hardwareAddress: maxBytes(128),
        ips: keyedList(interfaceAddress, { most: 16, keyOf: (ip) => ip }),
      }),
    ),
  }),
)
const repeatedDevice: Rule<DeviceStatus> = (device, report) => {
  if (!report.isRepeated(repeatedDevice, idOf(device))) return
  report.add({
    reason: 'FieldValueDuplicate',
    message: `Duplicate value: ${shownId}`,
    field: report.path('deviceID'),
  })
}

const lists = fields<Status, Allocated>({
  reservedFor: keyedList<Consumer, unknown>(consumer, { most: 256, member: 'uid', keyOf: ({ uid }) => uid }),
  devices: all<DeviceStatus[] | undefined, Allocated>(each(deviceStatus), each(repeatedDevice)),
})

const reservations: Rule<KubeObject, Status> = (object, report, { reservedFor: before = [] }) => {
  const { reservedFor = [], allocation } = statusOf(object)
  if (reservedFor.length === 0) return
  if (allocation === undefined) {
    report.forbidden('reservedFor', 'may not be specified when `allocated` is not set')
    return
  }
  if (object.metadata.deletionTimestamp === undefined) return
  const known = new Set(before.map((one) => JSON.stringify(one)))
  if (!reservedFor.every((one) => known.has(JSON.stringify(one))))
    report.forbidden(
      'reservedFor',
      'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set',
    )
}

/** The status of the claim after an update through the subresource `status`. */
export const resourceClaimStatus: Rule<KubeObject, { readonly old: KubeObject; readonly claim: DeviceClaim }> = (
  object,
  report,
  { old, claim },
) => {
  const [status, before] = [statusOf(object), statusOf(old)]
  const { allocation } = status
  report.at('status', lists, status, { allocated: new Set(resultsOf(status).map(idOf)) })
  report.at('status', reservations, object, before)
  if (allocation === undefined) return
  if (before.allocation === undefined)
    report.at('status.allocation', newAllocation, allocation, { names: requestNamesOf(claim) })
  else if (!isDeepStrictEqual(allocation, before.allocation))
    report.invalidStruct('status.allocation', 'resource.AllocationResult', allocation, fieldImmutable)
}
