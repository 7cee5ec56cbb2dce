#include "fl/tensor/TensorBase.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/PooledAllocator.h"
#include "fl/device/DeviceManager.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/Detail.h"
#include "fl/tensor/Sparse.h"
#include "fl/tensor/View.h"

namespace fl {
namespace {

std::shared_ptr<detail::TensorStorage> makeStorage(
    TensorValue value, std::shared_ptr<const detail::SparseMatrix> sparse = nullptr) {
  return std::allocate_shared<detail::TensorStorage>(
      PooledAllocator<detail::TensorStorage>(),
      detail::TensorStorage{std::move(value), std::move(sparse)});
}

// A copy's: what is sparse stays so.
std::shared_ptr<detail::TensorStorage> copyStorage(const Tensor& tensor) {
  auto storage =
      tensor.isSparse() ? makeStorage(nullptr, tensor.sparseMatrix()) : makeStorage(tensor.value());
  storage->isNone = !tensor.hasAdapter();
  return storage;
}

bool isOutside(const detail::TensorStorage& storage) {
  return detail::activeCapture && storage.recording != detail::activeRecording;
}

void noteAssignment(const std::shared_ptr<detail::TensorStorage>& storage, bool rebinds) {
  if (isOutside(*storage)) detail::activeCapture->onAssign(detail::TensorRef(storage), rebinds);
}

// The tensor has another storage than views that were there, or `view` is none of it any more.
void partViews(const detail::TensorStorage& storage) {
  if (storage.identity) storage.identity->views.fetch_add(1, std::memory_order_relaxed);
}
void partView(const std::shared_ptr<detail::TensorStorage>& storage,
              const std::shared_ptr<const detail::TensorView>& view) {
  if (storage && view && view->isMet) partViews(*storage);
}

TensorValue emptyValue() {
  return defaultTensorBackend().fromHost(nullptr, {dtype::f32, Shape({0})});
}

// Of a Tensor(). One that has none while a function is recorded was there before it.
std::shared_ptr<detail::TensorStorage> makeEmptyStorage(uint64_t recording = 0) {
  const auto storage = makeStorage(emptyValue());
  storage->recording = recording;
  storage->isNone = true;
  return storage;
}

// What a tensor that is moved from gives away. One that a recorded function knows, or that was
// there before the one that runs, is the same tensor afterwards, and reads as Tensor() does:
// std::swap and its like assign to it next. A move throws nothing; then a function that is compiled
// takes the tensor for gone.
std::shared_ptr<detail::TensorStorage> giveAway(
    std::shared_ptr<detail::TensorStorage>* from) noexcept {
  std::shared_ptr<detail::TensorStorage> given;
  try {
    if (detail::activeCapture && !*from) *from = makeEmptyStorage();
    given = std::move(*from);
    const bool outside = given && isOutside(*given);
    if (!outside && (!given || !given->identity)) {
      if (detail::activeCapture) *from = makeEmptyStorage(detail::activeRecording);
      return given;
    }
    const detail::TensorRef tensor(given);
    const auto left = makeEmptyStorage(given->recording);
    if (outside && given->value)
      given->value = detail::activeCapture->onRead(tensor, given->value, 0);
    given->recording = detail::activeRecording;  // it is the function's own
    partViews(*given);
    left->identity = std::exchange(given->identity, nullptr);
    left->identity->storage = left;
    *from = left;
    noteAssignment(left, /*rebinds=*/true);
  } catch (const std::exception&) {
    if (given) given->identity = nullptr;
  }
  return given;
}

void checkExtents(const Shape& shape) {
  for (Dim dim : shape.get())
    FL_USER_CHECK(dim >= 0, "Tensor: the shape ", shape, " has a negative dimension");
}

// Of the dimensions behind `rank`.
Shape withoutTrailingOnes(Shape shape, int rank = 0) {
  while (shape.ndim() > rank && shape.get().back() == 1) shape.get().pop_back();
  return shape;
}

}  // namespace

Tensor::Tensor() {
  if (detail::activeCapture) storage_ = makeEmptyStorage(detail::activeRecording);
}
Tensor::~Tensor() { partView(storage_, view_); }
Tensor::Tensor(Tensor&& tensor) noexcept {
  if (tensor.view_) {
    partView(tensor.storage_, tensor.view_);
    storage_ = std::move(tensor.storage_);
    view_ = std::move(tensor.view_);
  } else {
    storage_ = giveAway(&tensor.storage_);
  }
}

Tensor::Tensor(const Tensor& tensor) {
  FL_API_ENTRY();
  if (tensor.storage_ || detail::activeCapture) storage_ = copyStorage(tensor);
}

Tensor::Tensor(const Shape& shape, dtype type) {
  FL_API_ENTRY();
  checkExtents(shape);
  storage_ = makeStorage(defaultTensorBackend().fromHost(nullptr, {type, shape}));
}

Tensor::Tensor(dtype type) : Tensor(Shape({0}), type) {}

Tensor::Tensor(const Dim nRows, const Dim nCols, const Tensor& values, const Tensor& rowIdx,
               const Tensor& colIdx, StorageType storageType) {
  FL_API_ENTRY();
  storage_ = makeStorage(nullptr, std::make_shared<const detail::SparseMatrix>(detail::makeSparse(
                                      nRows, nCols, values, rowIdx, colIdx, storageType)));
}

std::shared_ptr<const detail::SparseMatrix> Tensor::sparseMatrix() const {
  return storage_ && !view_ ? storage_->sparse : nullptr;
}

bool Tensor::isSparse() const { return sparseMatrix() != nullptr; }

Tensor::Tensor(std::unique_ptr<TensorAdapterBase> adapter)
    : Tensor(TensorValue(std::move(adapter))) {
  FL_API_ENTRY();
  FL_USER_CHECK(storage_->value, "Tensor: a null adapter");
}

void Tensor::hold(TensorValue value) { storage_ = makeStorage(std::move(value)); }

Tensor Tensor::fromHost(const Shape& shape, const void* data, size_t count, dtype from, dtype to) {
  FL_API_ENTRY();
  checkExtents(shape);
  FL_USER_CHECK(static_cast<size_t>(shape.elements()) <= count, "Tensor: ", count,
                " elements for the shape ", shape, ", which has ", shape.elements());
  FL_USER_CHECK(data || count == 0, "Tensor: a null pointer for the shape ", shape);
  const TensorValue value = defaultTensorBackend().fromHost(data, {from, shape});
  return Tensor(detail::castTo(value, to));
}

Location Tensor::location() const {
  return backend().isOnHost() ? Location::Host : Location::Device;
}

Tensor Tensor::fromBuffer(Shape s, dtype t, const uint8_t* ptr, Location) {
  FL_API_ENTRY();
  return fromHost(s, ptr, s.elements(), t, t);
}

void Tensor::makeSureOfStorage() const {
  if (!storage_) storage_ = makeEmptyStorage();
}

void Tensor::noteType() const {
  makeSureOfStorage();
  noteView();
  if (isOutside(*storage_))
    detail::activeCapture->onType(detail::TensorRef(storage_), detail::typeOf(*storage_));
}

void Tensor::noteView() const {
  if (!detail::activeCapture || !view_ || view_->recording == detail::activeRecording) return;
  view_->isMet = true;
  detail::activeCapture->onView(detail::TensorRef(storage_));
}

bool Tensor::hasAdapter() const {
  if (detail::activeCapture) noteType();
  return storage_ && !storage_->isNone;
}

TensorValue Tensor::value() const {
  if (!storage_ && !detail::activeCapture) return emptyValue();
  makeSureOfStorage();
  noteView();
  TensorValue current = detail::readStorage(*storage_);
  if (auto* capture = detail::activeCapture)
    current = capture->onRead(detail::TensorRef(storage_), current, storage_->recording);
  return view_ ? detail::readView(current, *view_) : std::move(current);
}

Tensor Tensor::copy() const { return Tensor(*this); }

const Shape& Tensor::shape() const {
  static const Shape& empty = *new Shape({0});
  if (detail::activeCapture) noteType();
  if (!storage_) return empty;
  return view_              ? view_->shape
         : storage_->sparse ? storage_->sparse->shape
                            : storage_->value->shape();
}

Dim Tensor::dim(const size_t dim) const {
  const std::vector<Dim>& dims = shape().get();
  if (dim >= dims.size()) {
    FL_API_ENTRY();
    throwUser("dim: ", typeToString(type(), shape()), " has no dimension ", static_cast<Dim>(dim));
  }
  return dims[dim];
}

dtype Tensor::type() const {
  if (detail::activeCapture) noteType();
  return !storage_          ? dtype::f32
         : storage_->sparse ? storage_->sparse->values.type()
                            : storage_->value->type();
}

TensorBackend& Tensor::backend() const {
  return !storage_          ? defaultTensorBackend()
         : storage_->sparse ? storage_->sparse->values.backend()
                            : storage_->value->backend();
}

Tensor Tensor::astype(const dtype type) const {
  FL_API_ENTRY();
  return Tensor(detail::castTo(value(), type));
}

Tensor Tensor::operator()(const std::vector<Index>& indices) const {
  FL_API_ENTRY();
  FL_USER_CHECK(!indices.empty(), detail::describe("index", *this), ": needs an index");
  detail::TensorView view = currentView();
  view.index(indices, type());
  return viewed(std::move(view));
}

Tensor Tensor::flat(const Index& idx) const {
  FL_API_ENTRY();
  detail::TensorView view = currentView();
  view.flat(idx, type());
  return viewed(std::move(view));
}

detail::TensorView Tensor::currentView() const {
  return view_ ? *view_ : detail::TensorView{{}, shape()};
}

Tensor Tensor::viewed(detail::TensorView view) const {
  makeSureOfStorage();
  Tensor result;
  result.storage_ = storage_;
  view.site = currentCallSite();
  result.view_ = std::make_shared<detail::TensorView>(std::move(view));
  return result;
}

Tensor Tensor::flatten() const {
  FL_API_ENTRY();
  return Tensor(detail::reshapeValue(value(), Shape({shape().elements()})));
}

// ---- Host access ----

void Tensor::checkHostType(dtype wanted, const char* function) const {
  const bool integers = !isFloating(wanted) && !isFloating(type());
  FL_USER_CHECK(wanted == type() || (integers && getTypeSize(wanted) == getTypeSize(type())),
                detail::describe(function, *this), " is not read as ", wanted);
}

void Tensor::throwNoHostMemory(const char* function) const {
  throw OutOfMemory(detail::withCallSite(detail::concat(
      detail::describe(function, *this), ": its copy's ", bytes(), " bytes cannot be had")));
}

void Tensor::checkScalarRead(dtype wanted) const {
  checkHasElement("scalar");
  FL_USER_CHECK(wanted == type(), detail::describe("scalar", *this), " is not read as ", wanted);
}

void Tensor::checkHasElement(const char* function) const {
  FL_USER_CHECK(!isEmpty(), detail::describe(function, *this), ": the tensor is empty");
}

#define FL_DEFINE(T)                                     \
  template <>                                            \
  T Tensor::scalar<T>() const {                          \
    FL_API_ENTRY();                                      \
    checkScalarRead(dtype_traits<T>::fl_type);           \
    T result;                                            \
    (elements() == 1 ? *this : flat(0)).toHost(&result); \
    return result;                                       \
  }
FL_FOR_EACH_HOST_TYPE(FL_DEFINE)
#undef FL_DEFINE

void Tensor::toHost(void* data) const {
  FL_API_ENTRY();
  FL_USER_CHECK(data || isEmpty(), detail::describe("host", *this), ": a null pointer");
  if (!isEmpty()) defaultTensorBackend().toHost(value(), data);
}

void* Tensor::hostCopy() const {
  FL_API_ENTRY();
  if (isEmpty()) return nullptr;
  void* data = std::malloc(bytes());
  if (!data) throwNoHostMemory("host");
  toHost(data);
  return data;
}

// ---- Device memory ----

static TensorValue copyOf(TensorAdapterBase& value) {
  return defaultTensorBackend().fromHost(value.data()->onHost()->data(), value.valueType());
}

const Stream& Tensor::stream() const {
  return **DeviceManager::getInstance().getActiveDevice(kDefaultDeviceType).getStreams().begin();
}

TensorAdapterBase& Tensor::adapter() const {
  if (!storage_ || view_ || storage_->sparse) {
    auto own = makeStorage(value());
    partView(storage_, view_);
    storage_ = std::move(own);
    view_ = nullptr;
  }
  return *storage_->value;
}

TensorValue detail::releaseAdapterUnsafe(Tensor& tensor) {
  TensorValue value = tensor.value();
  tensor.hold(std::shared_ptr<TensorStorage>());
  return value;
}

TensorValue detail::releaseAdapter(Tensor&& tensor) { return releaseAdapterUnsafe(tensor); }

void* Tensor::lock() const {
  if (isEmpty()) return nullptr;
  adapter().data();  // computes them
  if (!storage_->locked && !storage_->ownsData()) setValue(copyOf(adapter()));
  storage_->locked = true;
  storage_->value->data()->willChange();
  return storage_->value->data()->data();
}

void Tensor::unlock() const {
  if (storage_) storage_->locked = false;
}

bool Tensor::isLocked() const { return storage_ && storage_->locked; }

void Tensor::setContext(void* context) {
  makeSureOfStorage();
  storage_->context = context;
}

void* Tensor::getContext() const { return storage_ ? storage_->context : nullptr; }

// ---- Assignment ----

void Tensor::hold(std::shared_ptr<detail::TensorStorage> storage) {
  // What a recorded function knows stays known.
  if (detail::activeCapture || (storage_ && storage_->identity && !view_)) {
    makeSureOfStorage();
    if (!storage) storage = makeEmptyStorage();
  }
  if (view_) {
    partView(storage_, view_);
  } else if (storage_) {
    partViews(*storage_);
  }
  if (storage_ && storage) {
    storage->recording = storage_->recording;
    // A view's storage is another tensor's.
    storage->identity = view_ ? nullptr : std::exchange(storage_->identity, nullptr);
    if (storage->identity) storage->identity->storage = storage;
    noteAssignment(storage, /*rebinds=*/true);
  }
  storage_ = std::move(storage);
  view_ = nullptr;
}

Tensor& Tensor::operator=(Tensor&& other) & {
  FL_API_ENTRY();
  if (this != &other) {
    // A view detaches: it is read now, as a copy would be.
    hold(other.view_ ? makeStorage(other.value()) : giveAway(&other.storage_));
  }
  return *this;
}

Tensor& Tensor::operator=(const Tensor& other) & {
  FL_API_ENTRY();
  if (this != &other) hold(other.storage_ || detail::activeCapture ? copyStorage(other) : nullptr);
  return *this;
}

Tensor& Tensor::operator=(Tensor&& other) && {
  FL_API_ENTRY();
  write(other);
  return *this;
}

Tensor& Tensor::operator=(const Tensor& other) && {
  FL_API_ENTRY();
  write(other);
  return *this;
}

void Tensor::write(const Tensor& source) {
  FL_USER_CHECK(withoutTrailingOnes(shape()) == withoutTrailingOnes(source.shape()),
                "assignment: ", typeToString(type(), shape()), " = ",
                typeToString(source.type(), source.shape()), ": shapes differ");
  put(source, detail::Write::Replace);
}

void Tensor::put(const Tensor& source, detail::Write write) {
  TensorValue box = detail::castTo(detail::reshapeValue(source.value(), shape()), type());
  // One that shows all, as it is, needs nothing of the old value.
  if (view_ && !(view_->moves.empty() && write == detail::Write::Replace)) {
    CallSite site = currentCallSite();
    site.setWrites(storage_->ownsData());
    Tensor whole;
    whole.storage_ = storage_;
    const TensorValue old = whole.value();
    const detail::CallSiteOverride writing(site);
    box = detail::writeView(old, *view_, box, write);
  }
  setValue(std::move(box));
}

void Tensor::setValue(TensorValue value) const {
  makeSureOfStorage();
  noteView();
  const TensorValue old = storage_->value;
  detail::writeStorage(*storage_, value);
  if (old && !storage_->locked) value->backend().onUpdate(storage_, old, value);
  noteAssignment(storage_, /*rebinds=*/false);
}

ir::ValueType detail::typeOf(const TensorStorage& storage) {
  return storage.sparse ? ir::ValueType{storage.sparse->values.type(), storage.sparse->shape}
                        : storage.value->valueType();
}

TensorValue detail::readStorage(const TensorStorage& storage) {
  // Each operand of each operator comes here: no reference is counted in vain.
  if (storage.sparse) return toDense(*storage.sparse);
  return storage.locked ? copyOf(*storage.value) : storage.value;
}

void detail::writeStorage(TensorStorage& storage, TensorValue value) {
  if (storage.locked) {
    value = castTo(std::move(value), storage.value->type());
    storage.value->data()->assign(value->data()->onHost()->data());
  } else {
    storage.value = std::move(value);
    storage.sparse = nullptr;
    storage.isNone = false;
  }
}

namespace {

// By the backend's virtual, which may be a researcher's own.
Tensor updated(ir::Op op, const Tensor& lhs, const Tensor& rhs) {
  TensorBackend& backend = defaultTensorBackend();
  if (op == ir::Op::Add) return backend.add(lhs, rhs);
  if (op == ir::Op::Sub) return backend.sub(lhs, rhs);
  return op == ir::Op::Mul ? backend.mul(lhs, rhs) : backend.div(lhs, rhs);
}

}  // namespace

Tensor& Tensor::updateInPlace(ir::Op op, const Tensor& rhs) {
  if (rhs.ndim() > ndim() && rhs.shape().get().back() == 1) {
    const Shape shape = withoutTrailingOnes(rhs.shape(), ndim());
    return updateInPlace(op, Tensor(detail::reshapeValue(rhs.value(), shape)));
  }
  if (!view_) {
    const Tensor updated = fl::updated(op, *this, rhs);
    FL_USER_CHECK(updated.shape() == shape(), describeCall("", ""), ": the shape would change");
    setValue(updated.value());
    return *this;
  }
  FL_USER_CHECK(withoutTrailingOnes(shape()) == withoutTrailingOnes(rhs.shape()),
                describeCall("", ""), ": shapes differ");
  const Tensor shaped(detail::castTo(detail::reshapeValue(rhs.value(), shape()), type()));
  if (accumulates(op)) {
    put(op == ir::Op::Sub ? negative(shaped) : shaped, detail::Write::Add);
  } else {
    write(updated(op, *this, shaped));
  }
  return *this;
}

// Where an index may name an element twice, every one of its updates counts.
bool Tensor::accumulates(ir::Op op) const {
  return view_ && view_->hasLookups() && (op == ir::Op::Add || op == ir::Op::Sub);
}

Tensor& Tensor::updateInPlace(ir::Op op, const Number& rhs) {
  const Number number = detail::stored(rhs, type());
  if (view_) return updateInPlace(op, detail::filled(shape(), number));
  const bool widens = isFloating(rhs.type()) && !isFloating(type()) && type() != dtype::b8;
  const Tensor widened = widens ? detail::castTo(*this, dtype::f32) : *this;
  write(updated(op, widened, detail::numberTensor(widens ? rhs.cast(dtype::f32) : number)));
  return *this;
}

#define FL_DEFINE_TENSOR(OP, Name)                    \
  Tensor& Tensor::operator OP(const Tensor & value) { \
    FL_API_ENTRY_OF(std::as_const(*this), value);     \
    return updateInPlace(ir::Op::Name, value);        \
  }
FL_DEFINE_TENSOR(+=, Add)
FL_DEFINE_TENSOR(-=, Sub)
FL_DEFINE_TENSOR(*=, Mul)
FL_DEFINE_TENSOR(/=, Div)
#undef FL_DEFINE_TENSOR

#define FL_DEFINE_SCALAR(OP, Name, T)                      \
  Tensor& Tensor::operator OP(const T & value) {           \
    FL_API_ENTRY();                                        \
    return updateInPlace(ir::Op::Name, Number::of(value)); \
  }
#define FL_DEFINE(T)                                                           \
  Tensor& Tensor::operator=(const T& value) {                                  \
    FL_API_ENTRY();                                                            \
    write(detail::filled(shape(), detail::stored(Number::of(value), type()))); \
    return *this;                                                              \
  }                                                                            \
  FL_DEFINE_SCALAR(+=, Add, T)                                                 \
  FL_DEFINE_SCALAR(-=, Sub, T)                                                 \
  FL_DEFINE_SCALAR(*=, Mul, T)                                                 \
  FL_DEFINE_SCALAR(/=, Div, T)
FL_FOR_EACH_SCALAR_TYPE(FL_DEFINE)
#undef FL_DEFINE
#undef FL_DEFINE_SCALAR

}  // namespace fl
