// Memory that programs read and write by pointer, devices and streams.
#include <gmock/gmock.h>

#include <sstream>

#include "fl/fl.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using test::errorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DeviceMemory, WritesAreSeenByLaterCalls) {
  Tensor x = iota({4});
  const Tensor before = x + 1.0;  // of x as it is now, whenever it is computed
  const Tensor copy = x;
  float* const memory = x.device<float>();
  EXPECT_TRUE(x.isLocked());
  EXPECT_EQ(memory[3], 3);
  memory[0] = 10;
  const Tensor during = x * 2.0;
  memory[1] = 20;
  const Tensor after = x * 2.0;
  x.unlock();
  EXPECT_FALSE(x.isLocked());
  EXPECT_THAT(before.toHostVector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(copy.toHostVector<float>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(during.toHostVector<float>(), ElementsAre(20, 2, 4, 6));
  EXPECT_THAT(after.toHostVector<float>(), ElementsAre(20, 40, 4, 6));
  EXPECT_THAT(x.toHostVector<float>(), ElementsAre(10, 20, 2, 3));
}

TEST(DeviceMemory, KeepsItsPlaceWhileItIsLocked) {
  Tensor x = full({3}, 1.0);
  float* memory = nullptr;
  x.device(&memory);
  x += 1.0;
  x(2) = 7.0;
  EXPECT_EQ(x.device<void>(), memory);
  EXPECT_THAT(std::vector<float>(memory, memory + 3), ElementsAre(2, 2, 7));
  x.unlock();
}

TEST(DeviceMemory, KeepsItsDtypeWhileItIsLocked) {
  Tensor x = full({1000}, 1.f);
  const float* const floats = x.device<float>();
  x += full({1000}, 1.5, dtype::f64);
  EXPECT_EQ(x.type(), dtype::f32);
  EXPECT_EQ(std::vector<float>(floats, floats + 1000), std::vector<float>(1000, 2.5f));
  x.unlock();
  x += full({1000}, 1.5, dtype::f64);
  EXPECT_EQ(x.type(), dtype::f64);

  Tensor y = full({3}, 1);
  const int* const integers = y.device<int>();
  y += full({3}, 1.5f);
  EXPECT_EQ(y.type(), dtype::s32);
  EXPECT_THAT(std::vector<int>(integers, integers + 3), ElementsAre(2, 2, 2));
  Tensor v = y(range(1, 3));
  v += full({2}, 2.5, dtype::f64);
  EXPECT_THAT(std::vector<int>(integers, integers + 3), ElementsAre(2, 4, 4));
  y.unlock();
}

TEST(DeviceMemory, OfAViewIsItsOwn) {
  Tensor x = iota({3, 2});
  const Tensor column = x(span, 1);
  column.device<float>()[0] = 100;
  column.unlock();
  EXPECT_THAT(column.toHostVector<float>(), ElementsAre(100, 4, 5));
  EXPECT_THAT(x.toHostVector<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(DeviceMemory, Misuse) {
  EXPECT_EQ(Tensor().device<float>(), nullptr);
  EXPECT_THAT(errorOf([&] { full({2}, 1.0).device<int>(); }),
              HasSubstr("device: f32[2] is not read as s32, at tests/tensor/"));
}

TEST(HostMemory, IsOfTheTensorsType) {
  const Tensor x = full({2}, 1.5, dtype::f64), y = full({2}, 7, dtype::u16);
  float few[2];
  EXPECT_THAT(errorOf([&] { x.host(few); }),
              HasSubstr("host: f64[2] is not read as f32, at tests/tensor/"));
  EXPECT_THAT(errorOf([&] { x.host<float>(); }),
              HasSubstr("host: f64[2] is not read as f32, at tests/tensor/"));
  double values[2];
  x.host(values);
  EXPECT_THAT(values, ElementsAre(1.5, 1.5));
  x.host(static_cast<void*>(values));
  EXPECT_THAT(values, ElementsAre(1.5, 1.5));
  short integers[2];
  y.host(integers);
  EXPECT_THAT(integers, ElementsAre(7, 7));
}

TEST(Context, IsCarried) {
  Tensor x = full({2}, 1.0);
  EXPECT_EQ(x.getContext(), nullptr);
  int context = 0;
  x.setContext(&context);
  EXPECT_EQ(x.getContext(), &context);
}

TEST(Devices, TheCpu) {
  DeviceManager& manager = DeviceManager::getInstance();
  EXPECT_TRUE(manager.isDeviceTypeAvailable(DeviceType::x64));
  EXPECT_EQ(manager.getDeviceCount(DeviceType::x64), 1u);
  EXPECT_EQ(getDeviceCount(), 1);
  Device& cpu = manager.getActiveDevice(DeviceType::x64);
  EXPECT_EQ(&cpu, &manager.getDevice(DeviceType::x64, kX64DeviceId));
  EXPECT_EQ(manager.getDevicesOfType(DeviceType::x64), std::vector<Device*>{&cpu});
  EXPECT_EQ(cpu.type(), DeviceType::x64);
  EXPECT_EQ(&cpu.impl<X64Device>(), &cpu);
  EXPECT_EQ(cpu.getStreams().size(), 1u);
  static int active = -1;
  cpu.addSetActiveCallback([](int id) { active = id; });
  setDevice(0);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(getDevice(), 0);
  const char* const words = "DeviceManager: no device 1 of type x64, which has 1, at tests/tensor/";
  EXPECT_THAT(errorOf<std::runtime_error>([&] { setDevice(1); }), HasSubstr(words));
  EXPECT_THAT(errorOf<std::runtime_error>([&] { manager.getDevice(DeviceType::x64, 1); }),
              HasSubstr(words));
}

class OtherDevice : public DeviceTrait<OtherDevice> {
 public:
  static constexpr DeviceType type = DeviceType::CUDA;
};

TEST(Devices, Misuse) {
  Device& cpu = DeviceManager::getInstance().getActiveDevice(DeviceType::x64);
  const Device& constant = cpu;
  const char* const words = "Device::impl: a device of x64 is no CUDA, at tests/tensor/";
  EXPECT_THAT(errorOf([&] { cpu.impl<OtherDevice>(); }), HasSubstr(words));
  EXPECT_THAT(errorOf([&] { constant.impl<OtherDevice>(); }), HasSubstr(words));
  EXPECT_THAT(errorOf([&] { cpu.addStream(nullptr); }),
              HasSubstr("Device::addStream: a null stream, at tests/tensor/"));
  EXPECT_EQ(cpu.getStreams().size(), 1u);
}

TEST(Streams, OrderWhatIsPending) {
  const Tensor x = full({4}, 1.0), y = x + 1.0;
  const Stream& stream = y.stream();
  EXPECT_EQ(stream.type(), StreamType::Synchronous);
  EXPECT_EQ(&stream.device(), &DeviceManager::getInstance().getActiveDevice(DeviceType::x64));
  EXPECT_EQ(&stream.impl<SynchronousStream>(), &stream);
  relativeSync(stream, std::vector<const Tensor*>{&y});
  relativeSync(stream, std::vector<Tensor>{x, y});
  relativeSync(std::vector<Tensor>{x, y}, stream);
  stream.relativeSync({&stream});
  stream.sync();
  sync(0);
  sync(std::unordered_set<DeviceType>{DeviceType::x64});
  sync(std::unordered_set<const Device*>{&stream.device()});
  EXPECT_THAT(y.toHostVector<float>(), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(errorOf<std::runtime_error>([] { sync(1); }),
              HasSubstr("DeviceManager: no device 1 of type x64, which has 1, at tests/tensor/"));
}

TEST(MemoryManager, Describes) {
  const Tensor x = full({1000}, 1.0) + 1.0;
  x.toHostVector<float>();
  std::ostringstream os;
  detail::getMemMgrInfo("after one tensor", 0, &os);
  EXPECT_THAT(os.str(), HasSubstr("after one tensor\ndevice 0: "));
  EXPECT_THAT(os.str(), HasSubstr(" B in use"));
}

}  // namespace
}  // namespace fl
