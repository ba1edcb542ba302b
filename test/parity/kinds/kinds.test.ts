// Creates, changes and deletes objects of the built-in kinds on a real kube-apiserver and in a logical cluster.
import { machineAddress } from '#test/support/network.ts'
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { chosenWay } from '#test/parity/support/our-server.ts'
import { admissionRows } from './admission-kinds.ts'
import { certificateRows } from './certificate-kinds.ts'
import { coreRows } from './core.ts'
import { deviceRows } from './device-kinds.ts'
import { flowRows } from './flow-kinds.ts'
import { networkRows, nodeRows, rbacRows, workloadRows } from './groups.ts'
import { knownKindDifferences } from './known-differences.ts'
import { oddBodyRows } from './odd-bodies.ts'
import { oddValueRows } from './odd-values.ts'
import { limitingRows } from './policy-kinds.ts'
import { bindingRows } from './pod-binding.ts'
import { serviceRows } from './service-life.ts'
import { storageRows } from './storage-kinds.ts'
import { warningRows } from './warnings.ts'
import { wrongTypeRows } from './wrong-types.ts'
import { wholeRows } from './whole-objects.ts'

describe("built-in kinds equal a real server's", function () {
  this.timeout(180_000)
  const rows = [
    ...coreRows,
    ...workloadRows,
    ...networkRows,
    ...nodeRows,
    ...limitingRows,
    // A request for a certificate keeps the name of its user, and the aggregator passes on a user of the host.
    ...(chosenWay() === 'aggregator' ? [] : certificateRows),
    ...admissionRows,
    ...flowRows,
    ...storageRows,
    ...deviceRows,
    ...rbacRows,
    ...serviceRows,
    ...bindingRows,
    ...wholeRows,
    ...oddBodyRows,
    ...oddValueRows,
    ...warningRows,
    ...wrongTypeRows,
  ]
  // A loopback address, the default, is none that the endpoints of the Service kubernetes may have.
  const ourFlags = [`--advertise-address=${machineAddress()}`]
  compareRows(rows, { name: 'kinds', known: knownKindDifferences, ourFlags })
})
