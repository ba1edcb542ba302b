// ip(), cidr() and the methods of addresses and networks.
import {
  goQuote,
  isMappedV4,
  maskNetwork,
  parseAddress,
  parseNetwork,
  printAddress,
  sharesPrefix,
  type Address,
  type Network,
} from '#apimachinery/text/index.ts'
import {
  type FunctionDeclaration,
  type Implementation,
  member,
  overload,
} from '#apimachinery/cel/declarations/declarations.ts'
import { boolType, type CelType, intType, opaqueType, stringType } from '#apimachinery/cel/types/cel-type.ts'
import { CelError, CelObject, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'

const ipType = opaqueType('net.IP')
const cidrType = opaqueType('net.CIDR')

class IpValue extends CelObject {
  readonly typeName = 'net.IP'
  readonly address: Address

  constructor(address: Address) {
    super()
    this.address = address
  }

  override equalTo(other: Value): boolean | CelError {
    if (!(other instanceof IpValue)) return noSuchOverload
    return this.address.bits === other.address.bits && this.address.value === other.address.value
  }

  override get size(): number {
    return this.address.bits / 8
  }

  get text(): string {
    return printAddress(this.address)
  }
}

class CidrValue extends CelObject {
  readonly typeName = 'net.CIDR'
  readonly network: Network

  constructor(network: Network) {
    super()
    this.network = network
  }

  override equalTo(other: Value): boolean | CelError {
    return other instanceof CidrValue ? this.text === other.text : noSuchOverload
  }

  override get size(): number {
    return Math.ceil(this.network.length / 8)
  }

  get text(): string {
    return `${printAddress(this.network.address)}/${String(this.network.length)}`
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function readIp(text: string): IpValue | CelError {
  try {
    const address = parseAddress(text)
    if (address.zone !== '') return new CelError(`IP address ${goQuote(text)} with zone value is not allowed`)
    if (isMappedV4(address)) return new CelError(`IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`)
    return new IpValue(address)
  } catch (error) {
    return new CelError(`IP Address ${goQuote(text)} parse error during conversion from string: ${messageOf(error)}`)
  }
}

const cidrError = 'network address parse error during conversion from string'

function readCidr(text: string): CidrValue | CelError {
  try {
    const network = parseNetwork(text)
    if (isMappedV4(network.address))
      return new CelError(`${cidrError}: IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`)
    return new CidrValue(network)
  } catch (error) {
    return new CelError(`${cidrError}: ${cidrError}: ${messageOf(error)}`)
  }
}

const ofText =
  (run: (text: string) => Value): Implementation =>
  (text) =>
    typeof text === 'string' ? run(text) : noSuchOverload

const ofIp =
  (run: (address: Address, ip: IpValue) => Value): Implementation =>
  (ip) =>
    ip instanceof IpValue ? run(ip.address, ip) : noSuchOverload

const ofCidr =
  (run: (network: Network) => Value): Implementation =>
  (cidr) =>
    cidr instanceof CidrValue ? run(cidr.network) : noSuchOverload

const startsWith = ({ bits, value }: Address, v4: bigint, v4Length: number, v6: bigint, v6Length: number): boolean =>
  bits === 32 ? value >> BigInt(32 - v4Length) === v4 : value >> BigInt(128 - v6Length) === v6

const isUnspecified = ({ value }: Address): boolean => value === 0n
const isLoopback = (address: Address): boolean => startsWith(address, 127n, 8, 1n, 128)
const isMulticast = (address: Address): boolean => startsWith(address, 0xen, 4, 0xffn, 8)
const isLinkLocalUnicast = (address: Address): boolean => startsWith(address, 0xa9fen, 16, 0xfe80n >> 6n, 10)
const isBroadcast = ({ bits, value }: Address): boolean => bits === 32 && value === 0xffff_ffffn

function isLinkLocalMulticast({ bits, value }: Address): boolean {
  return bits === 32 ? value >> 8n === 0xe00000n : value >> 120n === 0xffn && ((value >> 112n) & 0xfn) === 2n
}

function isGlobalUnicast(address: Address): boolean {
  return !(
    isUnspecified(address) ||
    isLoopback(address) ||
    isMulticast(address) ||
    isLinkLocalUnicast(address) ||
    isBroadcast(address)
  )
}

const ipMethod = (name: string, id: string, result: CelType, run: Implementation): FunctionDeclaration => ({
  name,
  overloads: [member(id, [ipType], result, run)],
})

export const ipFunctions: readonly FunctionDeclaration[] = [
  { name: 'ip', overloads: [overload('string_to_ip', [stringType], ipType, ofText(readIp))] },
  ipMethod(
    'family',
    'ip_family',
    intType,
    ofIp(({ bits }) => (bits === 32 ? 4 : 6)),
  ),
  {
    name: 'ip.isCanonical',
    overloads: [
      overload(
        'ip_is_canonical',
        [stringType],
        boolType,
        ofText((text) => {
          const ip = readIp(text)
          return ip instanceof CelError ? ip : ip.text === text
        }),
      ),
    ],
  },
  ipMethod('isUnspecified', 'ip_is_unspecified', boolType, ofIp(isUnspecified)),
  ipMethod('isLoopback', 'ip_is_loopback', boolType, ofIp(isLoopback)),
  ipMethod('isLinkLocalMulticast', 'ip_is_link_local_multicast', boolType, ofIp(isLinkLocalMulticast)),
  ipMethod('isLinkLocalUnicast', 'ip_is_link_local_unicast', boolType, ofIp(isLinkLocalUnicast)),
  ipMethod('isGlobalUnicast', 'ip_is_global_unicast', boolType, ofIp(isGlobalUnicast)),
  {
    name: 'isIP',
    overloads: [
      overload(
        'is_ip',
        [stringType],
        boolType,
        ofText((text) => readIp(text) instanceof IpValue),
      ),
    ],
  },
  {
    name: 'string',
    overloads: [
      overload(
        'ip_to_string',
        [ipType],
        stringType,
        ofIp((_address, ip) => ip.text),
      ),
    ],
  },
]

function containsIp(cidr?: Value, other?: Value): Value {
  const ip = typeof other === 'string' ? readIp(other) : other
  if (!(cidr instanceof CidrValue) || !(ip instanceof IpValue)) return noSuchOverload
  return sharesPrefix(cidr.network.address, ip.address, cidr.network.length)
}

function containsCidr(cidr?: Value, other?: Value): Value {
  const inner = typeof other === 'string' ? readCidr(other) : other
  if (inner instanceof CelError) return inner
  if (!(cidr instanceof CidrValue) || !(inner instanceof CidrValue)) return noSuchOverload
  const { address, length } = cidr.network
  return length <= inner.network.length && sharesPrefix(address, inner.network.address, length)
}

const cidrMethod = (name: string, id: string, result: CelType, run: Implementation): FunctionDeclaration => ({
  name,
  overloads: [member(id, [cidrType], result, run)],
})

export const cidrFunctions: readonly FunctionDeclaration[] = [
  { name: 'cidr', overloads: [overload('string_to_cidr', [stringType], cidrType, ofText(readCidr))] },
  {
    name: 'containsIP',
    overloads: [
      member('cidr_contains_ip_string', [cidrType, stringType], boolType, containsIp),
      member('cidr_contains_ip_ip', [cidrType, ipType], boolType, containsIp),
    ],
  },
  {
    name: 'containsCIDR',
    overloads: [
      member('cidr_contains_cidr_string', [cidrType, stringType], boolType, containsCidr),
      member('cidr_contains_cidr', [cidrType, cidrType], boolType, containsCidr),
    ],
  },
  cidrMethod(
    'ip',
    'cidr_ip',
    ipType,
    ofCidr(({ address }) => new IpValue(address)),
  ),
  cidrMethod(
    'prefixLength',
    'cidr_prefix_length',
    intType,
    ofCidr(({ length }) => length),
  ),
  cidrMethod(
    'masked',
    'cidr_masked',
    cidrType,
    ofCidr((network) => new CidrValue(maskNetwork(network))),
  ),
  {
    name: 'isCIDR',
    overloads: [
      overload(
        'is_cidr',
        [stringType],
        boolType,
        ofText((text) => readCidr(text) instanceof CidrValue),
      ),
    ],
  },
  {
    name: 'string',
    overloads: [
      overload('cidr_to_string', [cidrType], stringType, (cidr) =>
        cidr instanceof CidrValue ? cidr.text : noSuchOverload,
      ),
    ],
  },
]

/** The types that expressions may name: `type(x) == net.IP`. */
export const networkTypes: readonly CelType[] = [ipType, cidrType]
