export { decodeProtobuf, hasMoreValues, type DecodedProtobuf } from './decode-protobuf.ts'
export {
  encodeListItem,
  encodeProtobuf,
  hasProtobuf,
  protobufListFrame,
  protobufWatchEvent,
} from './encode-protobuf.ts'
